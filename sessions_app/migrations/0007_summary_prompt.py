from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0006_audit_chain")]

    operations = [
        migrations.AddField("workspace", "summary_prompt", models.TextField(blank=True, default="", max_length=4_000)),
    ]
