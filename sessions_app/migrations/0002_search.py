from django.db import migrations

from memoryhub.lib.search.indexes import is_installed
from memoryhub.lib.search.operations import CreateSearchFunctions, CreateSearchIndex


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0001_initial")]

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

    def apply(self, project_state, schema_editor, collect_sql=False):
        """Do nothing in a database of commit 827a92b, whose 0007_search has created these indexes."""
        if is_installed(schema_editor.connection, "sessions_app_entry"):
            return project_state
        return super().apply(project_state, schema_editor, collect_sql)
