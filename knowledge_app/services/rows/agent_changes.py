"""Changes that agents make in rows: at once, or as proposals where a person has to decide first.

A change waits if people decided about what it changes (``decisions``), or if it is flagged by the content check. The
row stays as it is, and in use. Flagged changes of rows that aren't in use are made at once: the row stays held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from knowledge_app.models import KeyValue, KnowledgeEntry
from knowledge_app.services.decisions import FROM_FILES, NAMES, REPEATING, decided_fields
from knowledge_app.services.held_rows import Finding, change_findings
from knowledge_app.services.removed_texts import RemovedTexts
from knowledge_app.services.rows.key_values import checked, new_state, write_value
from knowledge_app.services.rows.knowledge import checked_values, save_entry
from knowledge_app.services.rows.proposed_edits import propose_edit, supersede_proposals
from knowledge_app.services.rows.row_changes import Values
from memoryhub.lib.database import db_retry
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By
from sessions_app.services.workspaces import lock_workspace

DECIDED = "changes what a person wrote, corrected, verified, approved, withdrew or restored"


@dataclass(frozen=True)
class Waiting:
    """A change that a person decides about. ``findings``: why."""

    run: Run
    findings: list[Finding]


@db_retry.retried
@transaction.atomic
def write_value_as_agent(
    workspace: Workspace, key: str, value: str, *, is_json: bool = False, by: By
) -> tuple[KeyValue, Waiting | None]:
    """Set the value of a key, or propose it. Raises Invalid, and Conflict if too many proposals are pending."""
    key, value = checked(key, value)
    lock_workspace(workspace.pk)
    row = KeyValue.objects.filter(workspace=workspace, key=key).first()
    waiting = propose_if_needed(row, new_state(value, is_json=is_json), by=by) if row else None
    if row and waiting:
        return row, waiting
    return write_value(workspace, key, value, is_json=is_json, by=by), None


@db_retry.retried
@transaction.atomic
def change_entry_as_agent(entry: KnowledgeEntry, values: Values, *, by: By) -> Waiting | None:
    """Change an entry in place, or propose it. Raises KnowledgeExists, Invalid, Conflict."""
    lock_workspace(entry.workspace_id)
    waiting = propose_if_needed(entry, checked_values(entry, values), by=by)
    if waiting is None:
        save_entry(entry, values, by=by)
    return waiting


def propose_if_needed(row: Any, values: Values, *, reason: str = "", by: By) -> Waiting | None:
    """Propose to change fields of a row if a person has to decide. Ends the agent's earlier proposals for them.

    Call inside a transaction. Raises Conflict if too many proposals are pending.
    """
    rows: Any = type(row)._default_manager.select_related("workspace", "hold").select_for_update(of=("self",))
    row = rows.filter(pk=row.pk).first()
    values = {name: value for name, value in values.items() if row and getattr(row, name) != value}
    if not values:
        return None
    removed = RemovedTexts(row.workspace, apart_from=[row])
    findings = waiting_findings(row, values, decided_fields([row])[row.pk], removed)
    supersede_proposals(row, NAMES[type(row)], values, by=by)
    return propose(row, values, findings, reason, by) if findings else None


def waiting_findings(row: Any, values: Values, decided: set[str], removed: RemovedTexts) -> list[Finding]:
    """Return why a person has to decide about new values of a row; nothing if they can be set at once."""
    is_in_use = row.withdrawn_at is None and getattr(row, "hold", None) is None
    against = decided & values.keys()
    found = change_findings(row, values, removed) if is_in_use or against else []
    if not against:
        return found
    field = next((name for name in FROM_FILES[type(row)] if name in against), REPEATING[type(row)])
    return [{"field": field, "line": 1, "code": "decided", "message": DECIDED}, *found]


def propose(row: Any, values: Values, findings: Sequence[Finding], reason: str, by: By) -> Waiting:
    """Propose new values of a row. Raises Conflict if too many proposals are pending."""
    why = ", ".join(dict.fromkeys(one["message"] for one in findings))
    shown = [name for name in values if name in FROM_FILES[type(row)]]
    run = propose_edit(
        row,
        NAMES[type(row)],
        "assign",
        values=values,
        fields=[*shown, "withdrawn_at"],
        reason=f"{reason}: {why}" if reason else why,
        by=by,
    )
    return Waiting(run, list(findings))
