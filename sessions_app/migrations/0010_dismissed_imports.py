from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0009_search_folding")]

    operations = [
        migrations.AddField("importreport", "dismissed_at", models.DateTimeField(null=True, blank=True)),
    ]
