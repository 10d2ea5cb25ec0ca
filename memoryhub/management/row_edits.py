"""Edits of rows as commands make them: completed at once, with a summary that says how to undo them."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from knowledge_app.services.rows.edits import edit_rows
from knowledge_app.services.rows.row_changes import Values
from memoryhub.as_json import edit_document
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


def given(options: dict[str, Any], **fields: str) -> dict[str, Any]:
    """Return the fields whose options were given, by name of field: ``given(options, category="kind")``."""
    return {field: options[option] for field, option in fields.items() if options[option]}
