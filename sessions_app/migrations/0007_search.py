from django.db import migrations, models

from memoryhub.lib.search.operations import CreateSearchFunctions, CreateSearchIndex


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0006_redactable_audit")]

    operations = [
        migrations.CreateModel(
            name="IndexGuard",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("indexed_table", models.CharField(max_length=64)),
                ("last_id", models.BigIntegerField(default=0)),
            ],
        ),
        CreateSearchFunctions(),
        CreateSearchIndex(
            "sessions_app_entry",
            content=["content", "tool_calls"],
            json=["tool_calls"],
            meta=["name"],
            time="occurred_at",
            scope={"w": "workspace_id", "s": "session_id"},
            kind="kind",
        ),
        CreateSearchIndex(
            "sessions_app_summary",
            content=["content"],
            time="ends_at",
            scope={"w": "workspace_id", "s": "session_id"},
        ),
        CreateSearchIndex(
            "sessions_app_session",
            content=["title", "key", "summary_text", "note"],
            scope={"w": "workspace_id", "s": "id"},
        ),
    ]
