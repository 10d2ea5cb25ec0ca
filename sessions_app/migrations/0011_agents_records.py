import django.db.models.deletion
from django.db import migrations, models

from memoryhub.lib.database.add_column import AddColumn
from memoryhub.lib.database.append_only import Protect
from memoryhub.lib.render_once import RenderOnce
from memoryhub.lib.search.operations import HideFromSearchIndex

LAYOUTS = [
    ("nanobot", "nanobot"),
    ("grip", "Grip"),
    ("grid", "grid"),
    ("agterm", "AgTerm"),
    ("claude-code", "Claude Code"),
    ("codex", "Codex"),
    ("gemini-cli", "Gemini CLI"),
    ("openclaw", "OpenClaw"),
    ("opencode", "OpenCode"),
    ("hermes", "Hermes"),
    ("server-memory", "server-memory"),
    ("basic-memory", "basic-memory"),
    ("memory-bank", "Memory bank"),
    ("hub", "MemoryHub"),
]
LINK = {
    "null": True,
    "blank": True,
    "on_delete": django.db.models.deletion.SET_NULL,
    "to": "sessions_app.session",
}


class Migration(migrations.Migration):
    """Identify entries by their records' ids, and keep those that aren't part of the conversation out of searches."""

    dependencies = [("sessions_app", "0010_dismissed_imports")]

    operations = [
        RenderOnce(
            [
                AddColumn("entry", "is_injected", models.BooleanField(default=False, db_default=False)),
                AddColumn("entry", "is_rewound", models.BooleanField(default=False, db_default=False)),
                AddColumn("session", "parent", models.ForeignKey(related_name="subagents", **LINK)),
                AddColumn(
                    "session", "parent_call_id", models.CharField(max_length=512, blank=True, default="", db_default="")
                ),
                AddColumn("session", "forked_from", models.ForeignKey(related_name="forks", **LINK)),
                AddColumn("session", "missing_since", models.DateTimeField(null=True, blank=True)),
                AddColumn("workspace", "project", models.TextField(blank=True, default="", db_default="")),
            ]
        ),
        migrations.AddIndex(
            "entry",
            models.Index(
                fields=["workspace", "source_id"], condition=~models.Q(source_id=""), name="entry_by_source_id"
            ),
        ),
        HideFromSearchIndex(
            "sessions_app_entry",
            content=["content", "tool_calls"],
            json=["tool_calls"],
            meta=["name"],
            time="occurred_at",
            scope={"w": "workspace_id", "s": "session_id"},
            kind="kind",
            hidden_if=["is_injected", "is_rewound"],
        ),
        Protect("sessions_app_entry", free=("summary_id", "is_rewound")),
        migrations.AlterField(
            "workspace", "layout", models.CharField(choices=LAYOUTS, default="hub", max_length=16)
        ),
        migrations.RemoveConstraint("workspace", "workspace_one_per_folder"),
        migrations.AddConstraint(
            "workspace",
            models.UniqueConstraint(
                fields=["path", "project"], condition=~models.Q(path=""), name="workspace_one_per_folder"
            ),
        ),
    ]
