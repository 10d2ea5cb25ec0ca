"""Edits of rows as commands make them: completed at once, with a summary that says how to undo them."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from knowledge_app.services.rows.row_changes import Values
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.as_json import edit_document
from memoryhub.management.json_command import JsonCommand
from memoryhub.runs.executing import complete
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import Actor, By


def edit_now(
    actor: Actor, workspace: Workspace, table: str, action: str, pks: list[int], values: Values | None = None
) -> dict[str, Any]:
    """Edit rows as ``edit_rows`` does, complete the run, and return it as JSON."""
    return finish(edit_rows(workspace, table, action, pks, values=values, by=By(actor, timezone.now())))


def finish(run: Run) -> dict[str, Any]:
    """Complete a run and return it as JSON."""
    return edit_document(complete(run, now=timezone.now))


def edit_summary(run: dict[str, Any]) -> str:
    return f"{run['changed']} changed; undo with: runs undo {run['id']}"


def show_outcome(command: JsonCommand, result: dict[str, Any]) -> None:
    """Print what an edit or an export returned."""
    for name in ("note", "file"):
        if result.get(name):
            command.line(result[name])
    if result.get("run"):
        command.line(edit_summary(result["run"]))
    if "text" in result:
        command.stdout.write(result["text"])


def given(options: dict[str, Any], **fields: str) -> dict[str, Any]:
    """Return the fields whose options were given, by name of field: ``given(options, category="kind")``."""
    return {field: options[option] for field, option in fields.items() if options[option]}
