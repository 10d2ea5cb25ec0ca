from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from memoryhub.lib.database.add_column import AddColumn

PARTS = 16


def divide(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001
    """Divide the totals of workspaces on PostgreSQL, by summing those of their sessions."""
    if schema_editor.connection.vendor != "postgresql":
        return
    amounts = "entry_count, token_count, active_token_count"
    schema_editor.execute("DELETE FROM sessions_app_dailytotal WHERE session_id IS NULL")
    schema_editor.execute(
        f"INSERT INTO sessions_app_dailytotal (workspace_id, day, kind, part, {amounts}) "  # noqa: S608  constants
        f"SELECT workspace_id, day, kind, session_id % {PARTS}, sum(entry_count), sum(token_count), "
        "sum(active_token_count) FROM sessions_app_dailytotal WHERE session_id IS NOT NULL GROUP BY 1, 2, 3, 4",
        None,  # without parameters, "%" is an operator
    )


class Migration(migrations.Migration):
    """Keep several rows for the totals of a workspace's day, so that appends needn't wait for each other."""

    dependencies = [("sessions_app", "0013_source_folders")]

    operations = [
        AddColumn("dailytotal", "part", models.PositiveSmallIntegerField(default=0, db_default=0)),
        migrations.RemoveConstraint("dailytotal", "daily_workspace_once"),
        migrations.AddConstraint(
            "dailytotal",
            models.UniqueConstraint(
                fields=["workspace", "day", "kind", "part"],
                condition=models.Q(session__isnull=True),
                name="daily_workspace_part_once",
            ),
        ),
        migrations.RunPython(divide, migrations.RunPython.noop),
    ]
