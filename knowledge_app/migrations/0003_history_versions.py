from django.db import migrations, models

from memoryhub.lib.database.append_only import Protect


class Migration(migrations.Migration):
    dependencies = [("knowledge_app", "0002_search")]

    operations = [
        migrations.AddField(
            "historyentry",
            "version_of",
            models.PositiveIntegerField(
                blank=True,
                help_text="The position of the first version, if an edit in the file replaced it.",
                null=True,
            ),
        ),
        Protect("knowledge_app_historyentry", free=("session_id", "run_id", "withdrawn_at", "is_archived")),
    ]
