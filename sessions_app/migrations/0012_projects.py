from django.db import migrations, models

from memoryhub.lib.database.add_column import AddColumn
from memoryhub.lib.render_once import RenderOnce


class Migration(migrations.Migration):
    """Record which project an import read, and the folder of a project's instructions."""

    dependencies = [("sessions_app", "0011_agents_records")]

    operations = [
        RenderOnce(
            [
                AddColumn("workspace", "instructions_path", models.TextField(blank=True, default="", db_default="")),
                AddColumn("workspace", "write_instructions", models.BooleanField(default=False, db_default=False)),
                AddColumn("importreport", "project", models.TextField(blank=True, default="", db_default="")),
            ]
        ),
        migrations.RemoveConstraint("workspace", "workspace_written_back_fits"),
        migrations.AddConstraint(
            "workspace",
            models.CheckConstraint(
                condition=models.Q(("write_back", False), models.Q(("path", ""), _negated=True), _connector="OR"),
                name="workspace_written_back_fits",
            ),
        ),
    ]
