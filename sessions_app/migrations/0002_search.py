from django.db import migrations

from memoryhub.lib.search.operations import CreateSearchFunctions, CreateSearchIndex


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0001_initial")]

    replaces = [("sessions_app", "0007_search")]

    operations = [
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
