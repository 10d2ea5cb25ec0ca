from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0007_summary_prompt")]

    operations = [
        migrations.AddField(
            "workspace",
            "agent_changes",
            models.CharField(
                max_length=16,
                choices=[
                    ("accept", "Accept and list"),
                    ("hold_risky", "Hold risky changes"),
                    ("hold_all", "Hold all changes"),
                ],
                default="hold_risky",
            ),
        ),
    ]
