"""Plan an export: count what a layout can hold before anything is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.db.models import Count, F, Q
from django.utils.translation import gettext

from knowledge_app.models import (
    CachedResponse,
    Fact,
    HeldChange,
    HeldRow,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    MemoryDocument,
    MemoryRevision,
    Observation,
    TermRelation,
)
from knowledge_app.services.held_rows import unheld
from memoryhub.graph.export import count_terms
from memoryhub.lib.errors import Invalid
from memoryhub.lib.json_numbers import SPELLINGS
from memoryhub.lib.layouts.coverage import ExportPlan, plan_layout
from memoryhub.lib.layouts.file_names import is_own_name, session_names
from memoryhub.lib.layouts.snapshot import LAYOUTS
from sessions_app.models import Entry, Run, Session, Workspace
from sessions_app.querysets import IN_CONVERSATION
from sessions_app.services.export import count_summaries, exported_entries

STORED_ELSEWHERE = (
    "content",
    "tool_calls",
    "compressed",
    "timestamp",
    "role",
    "id",
    "tokenCount",
    SPELLINGS,
)  # keys of extra
KEPT_BY_NANOBOT = 1_000  # entries in its journal (formats.md section 2)


def chosen_layout(workspace: Workspace, layout: str) -> str:
    """Return the layout to write: for ``auto`` or "", the workspace's own, or the hub's if that is only read.

    Raises Invalid.
    """
    if layout in ("", "auto"):
        is_current = workspace.layout == "nanobot" and workspace.layout_version == "0.3"
        own = "nanobot-current" if is_current else workspace.layout
        return own if own in LAYOUTS else "hub"
    if layout not in LAYOUTS:
        message = gettext("Unknown layout %(layout)s. Use one of %(layouts)s.")
        raise Invalid(message % {"layout": repr(layout), "layouts": ", ".join(LAYOUTS)}, code="unknown_layout_name")
    return layout


def plan_export(workspace: Workspace, layout: str) -> ExportPlan:
    """Count what an export in a layout writes, converts and leaves out. Raises Invalid."""
    layout = chosen_layout(workspace, layout)
    counts = _sessions(workspace, layout) | _entries(workspace, layout) | _memory(workspace) | _rows(workspace)
    return plan_layout(counts, layout, workspace.layout)


def _sessions(workspace: Workspace, layout: str) -> dict[str, int]:
    sessions = Session.objects.filter(workspace=workspace)
    extras = sessions.exclude(extra={}).values_list("extra", flat=True)
    names = session_names(sessions.values_list("key", flat=True), layout)
    return {
        "sessions": len(names),
        "shared_names": sum(not is_own_name(key, name, layout) for key, name in names.items()),
        "hidden_sessions": sessions.filter(is_visible_to_agent=False).count(),
        "session_summaries": sessions.exclude(summary_text="").count(),
        "pointers": sessions.filter(last_consolidated__gt=0).count(),
        "titles": sessions.exclude(title="").count(),
        "checkpoints": sum("checkpoint" in extra for extra in extras.iterator(chunk_size=2000)),
        "summaries": count_summaries(workspace, with_earlier=layout == "hub"),
    }


def _entries(workspace: Workspace, layout: str) -> dict[str, int]:
    """Count entries in one query, which reads each of them once."""
    whole = Entry.objects.filter(workspace=workspace)
    is_exported = exported_entries(layout, workspace.layout)
    is_current = is_exported & Q(epoch=F("session__epoch"))
    is_folded = Q(position__lt=F("session__last_consolidated")) | Q(summary__isnull=False)
    is_result = Q(kind="tool_result")
    is_typed = Q(kind__in=("context", "summary")) | (is_result & ~Q(role="tool")) | Q(kind="tool_call", tool_calls=[])
    counts = whole.aggregate(
        entries=Count("pk", filter=is_current),
        all_entries=Count("pk", filter=is_exported),
        hidden_entries=Count("pk", filter=~IN_CONVERSATION if layout == "hub" else ~is_exported),
        folded_entries=Count("pk", filter=is_current & is_folded),
        calls=Count("pk", filter=is_current & ~Q(tool_calls=[])),  # not the name of the field, which is_typed uses
        tool_results=Count("pk", filter=is_current & is_result),
        message_times=Count("pk", filter=is_current & Q(occurred_at__isnull=False)),
        typed_entries=Count("pk", filter=is_current & is_typed),
    )
    counts["tool_calls"] = counts.pop("calls")
    counts["earlier_entries"] = counts.pop("all_entries") - counts["entries"]
    extras = whole.filter(is_current).exclude(extra={}).values_list("extra", flat=True)
    return counts | _extra_fields(extras.iterator(chunk_size=2000))


def _extra_fields(extras: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Count messages with fields that only their own program knows, and those whose content has several parts."""
    counts: Counter[str] = Counter()
    for extra in extras:
        counts["further_fields"] += any(_is_program_specific(name, value) for name, value in extra.items())
        counts["message_parts"] += "content" in extra
    return {"further_fields": counts["further_fields"], "message_parts": counts["message_parts"]}


def _is_program_specific(name: str, value: object) -> bool:
    if name == "metadata" and isinstance(value, dict):
        return bool(value.keys() - {"author"})
    return name not in STORED_ELSEWHERE


def _memory(workspace: Workspace) -> dict[str, int]:
    documents = MemoryDocument.objects.filter(workspace=workspace).exclude(head=None)
    history = unheld(HistoryEntry.objects.filter(workspace=workspace, withdrawn_at=None))
    count, document_count = history.count(), documents.count()
    facts = Fact.objects.filter(workspace=workspace, died=None)
    return {
        "documents": document_count,
        "other_documents": documents.exclude(name="MEMORY.md").count(),
        "revisions": MemoryRevision.objects.filter(document__workspace=workspace).count() - document_count,
        "marks": facts.filter(_is_marked() | Q(pinned=True)).count(),
        "held_changes": HeldChange.objects.filter(workspace=workspace, status=HeldChange.Status.PENDING).count(),
        "held_rows": HeldRow.objects.filter(workspace=workspace).waiting().count(),
        "history": count,
        "history_times": history.exclude(occurred_at=None).count(),
        "history_without_time": history.filter(occurred_at=None).count(),
        "history_sessions": history.exclude(session=None).count(),
        "history_with_blank_lines": history.filter(content__contains="\n\n").count(),
        "long_history": max(0, count - KEPT_BY_NANOBOT),
        "runs": Run.objects.filter(workspace=workspace).count(),
    }


def _is_marked() -> Q:
    return Q(last_verified_at__isnull=False) | Q(review_by__isnull=False)


def _rows(workspace: Workspace) -> dict[str, int]:
    counts: Counter[str] = Counter()
    tables: list[tuple[str, Any]] = [
        ("knowledge", KnowledgeEntry),
        ("observations", Observation),
        ("key_values", KeyValue),
    ]
    for kind, model in tables:
        rows = model.objects.filter(workspace=workspace)
        counts[kind] = rows.filter(withdrawn_at=None, hold=None).count()
        counts["withdrawn"] += rows.exclude(withdrawn_at=None).count()
        if kind != "key_values":
            counts["row_marks"] += rows.filter(_is_marked(), withdrawn_at=None, hold=None).count()
    counts["withdrawn"] += HistoryEntry.objects.filter(workspace=workspace).exclude(withdrawn_at=None).count()
    secrets = KeyValue.objects.filter(workspace=workspace, withdrawn_at=None, is_secret=True)
    counts["secrets"] = unheld(secrets).count()
    counts["cached_responses"] = CachedResponse.objects.filter(workspace=workspace).count()
    counts["terms"] = count_terms(workspace)
    counts["removed_relations"] = TermRelation.objects.filter(term__workspace=workspace, is_removed=True).count()
    return dict(counts)
