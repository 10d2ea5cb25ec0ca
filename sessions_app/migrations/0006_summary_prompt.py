from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0005_knowledge_in_context")]

    operations = [
        migrations.AddField("workspace", "summary_prompt", models.TextField(blank=True, default="", max_length=4_000)),
    ]
