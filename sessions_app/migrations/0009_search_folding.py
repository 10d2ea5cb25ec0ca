from django.db import migrations

from memoryhub.lib.search.operations import RebuildSearchIndex, ReplaceSearchFunctions


class Migration(migrations.Migration):
    """Index ß as ss, emoji as words, and text without invisible characters."""

    dependencies = [("sessions_app", "0008_agent_changes")]

    operations = [
        ReplaceSearchFunctions(),
        RebuildSearchIndex(
            "sessions_app_entry",
            content=["content", "tool_calls"],
            json=["tool_calls"],
            meta=["name"],
            time="occurred_at",
            scope={"w": "workspace_id", "s": "session_id"},
            kind="kind",
        ),
        RebuildSearchIndex(
            "sessions_app_summary",
            content=["content"],
            time="ends_at",
            scope={"w": "workspace_id", "s": "session_id"},
        ),
        RebuildSearchIndex(
            "sessions_app_session",
            content=["title", "key", "summary_text", "note"],
            scope={"w": "workspace_id", "s": "id"},
        ),
    ]
