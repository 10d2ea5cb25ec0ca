"""Plan and record the writing of corrections, withdrawals and new entries to Grip's knowledge.json.

Grip keeps its entries in memory and writes them all at once, so a running program may overwrite what the hub wrote. A
correction or addition therefore counts as delivered only when a file written by the agent contains it. Until then the
hub keeps its value and writes it again. Held entries aren't written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows.exporting import knowledge_record
from knowledge_app.services.rows.importing import file_identity
from knowledge_app.services.rows.knowledge_file import EntryEdit, edited_knowledge
from memoryhub.lib.layouts.records import KnowledgeRecord
from memoryhub.lib.layouts.write_rows import knowledge_json
from sessions_app.models import Workspace
from sessions_app.services.audit import By, record


@dataclass(frozen=True)
class KnowledgePlan:
    """The file's new text (None: nothing to write, or see ``why_not``), and the rows by kind of change."""

    text: str | None
    why_not: str = ""
    added: Collection[int] = ()
    changed: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    removed: Collection[int] = ()
    already_there: Collection[int] = ()


def knowledge_mark(workspace: Workspace) -> str:
    """Return a cheap fingerprint of the state of a workspace's entries."""
    rows = KnowledgeEntry.objects.filter(workspace=workspace).order_by()
    found = rows.aggregate(latest=Max("updated_at"), living=Count("pk", filter=Q(withdrawn_at=None, hold=None)))
    return f"{found['latest'].timestamp():.6f}-{found['living']}" if found["latest"] else "none"


def unwritten_entries(workspace: Workspace) -> tuple[QuerySet[KnowledgeEntry], QuerySet[KnowledgeEntry]]:
    """Return the entries whose correction or addition the file may lack, and the withdrawn ones that it may have."""
    rows = KnowledgeEntry.objects.filter(workspace=workspace).order_by("id")
    kept = rows.filter(withdrawn_at=None, hold=None).exclude(corrected={}, awaits_file_since=None)
    return kept, rows.filter(awaits_file_since=None).exclude(withdrawn_at=None)


def plan_knowledge(workspace: Workspace, raw: bytes | None, *, is_own: bool = False) -> KnowledgePlan:
    """Compare the entries with the bytes of the file just imported (None: there is no file). Reads only.

    ``is_own``: the hub wrote these bytes, so they don't show what the agent knows.
    """
    rows = list(KnowledgeEntry.objects.filter(workspace=workspace).select_related("hold").order_by("id"))
    by_id = {row.content_id: row for row in rows}
    living_last = sorted(rows, key=lambda row: (row.withdrawn_at is None, -row.pk))
    by_identity = {name: row for row in living_last for name in (file_identity(row), row.identity)}
    seen: dict[int, EntryEdit | None] = {}

    def edit_of(name: str, made: str) -> EntryEdit | None:
        row = by_id.get(name) or by_identity.get(made)
        if row is None or row.pk in seen:
            return None
        seen[row.pk] = _edit(row)
        return seen[row.pk]

    def waiting() -> list[KnowledgeEntry]:
        living = [row for row in rows if row.withdrawn_at is None and not hasattr(row, "hold")]
        return [row for row in living if row.awaits_file_since and row.pk not in seen]

    def new() -> list[KnowledgeRecord]:
        return [replace(knowledge_record(row), content_id=row.identity) for row in waiting()]

    if raw is None:
        return KnowledgePlan(knowledge_json(new()) if waiting() else None, added=[row.pk for row in waiting()])
    result = edited_knowledge(raw, edit_of, new)
    has_something = any(row.awaits_file_since or row.corrected for row in rows)
    edits = {pk: edit for pk, edit in seen.items() if edit is not None}
    return KnowledgePlan(
        result.text,
        result.why_not if has_something else "",
        added=[row.pk for row in waiting()],
        changed={pk: edit.values for pk, edit in edits.items() if not edit.goes},
        removed=[pk for pk, edit in edits.items() if edit.goes],
        already_there=[] if is_own else [row.pk for row in rows if row.awaits_file_since and row.pk in seen],
    )


def _edit(row: KnowledgeEntry) -> EntryEdit | None:
    if row.withdrawn_at is not None:
        return EntryEdit(goes=True)
    if not row.corrected or hasattr(row, "hold"):
        return None
    return EntryEdit({name: getattr(row, name) for name in row.corrected})


@transaction.atomic
def record_knowledge_written(workspace: Workspace, plan: KnowledgePlan, *, by: By) -> None:
    """Record what the file contains now, with an audit record if it was written."""
    rows = KnowledgeEntry.objects.filter(workspace=workspace)
    written = plan.text is not None
    if plan.already_there:
        rows.filter(pk__in=plan.already_there).update(awaits_file_since=None)
    if not written:
        return
    rows.filter(pk__in=plan.removed).update(awaits_file_since=by.at)
    for row in rows.select_for_update().filter(pk__in=plan.changed):
        rows.filter(pk=row.pk).update(corrected=row.corrected | plan.changed[row.pk])
    counts = {"added": len(plan.added), "changed": len(plan.changed), "removed": len(plan.removed)}
    summary = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    text = f"knowledge.json written to the agent's folder: {summary}"
    record(by, "knowledge.written", "workspace", workspace.pk, text, workspace=workspace, detail=counts)
