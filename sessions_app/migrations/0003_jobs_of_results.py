import django.db.models.deletion
from django.db import migrations, models

JOB = {"blank": True, "null": True, "on_delete": django.db.models.deletion.SET_NULL, "to": "memoryhub.job"}


class Migration(migrations.Migration):
    dependencies = [("memoryhub", "0002_one_queue"), ("sessions_app", "0002_search")]

    operations = [
        migrations.AddField("importreport", "job", models.OneToOneField(related_name="import_report", **JOB)),
        migrations.AddField("webhookdelivery", "job", models.OneToOneField(related_name="webhook_delivery", **JOB)),
        migrations.AddField("webhookdelivery", "tried_at", models.DateTimeField(blank=True, null=True)),
        migrations.AlterField(
            "importreport",
            "status",
            models.CharField(
                blank=True,
                choices=[("done", "Done"), ("failed", "Failed"), ("cancelled", "Cancelled")],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            "webhookdelivery",
            "status",
            models.CharField(blank=True, choices=[("sent", "Sent"), ("failed", "Failed")], max_length=16),
        ),
    ]
