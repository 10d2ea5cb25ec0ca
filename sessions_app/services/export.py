"""Sessions as records, for export."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import tzinfo
from typing import cast

from django.db.models import Exists, F, OuterRef, Q

from memoryhub.lib.layouts.records import EntryKind, EntryRecord, SessionRecord, SummaryRecord
from memoryhub.lib.layouts.snapshot import program_of
from memoryhub.lib.text import as_markdown
from sessions_app.models import Entry, Session, Summary, Workspace
from sessions_app.querysets import IN_CONVERSATION
from sessions_app.services.session_links import link_key


def session_record(
    session: Session, *, epoch: int | None = None, is_streamed: bool = False, exported: Q | None = None
) -> SessionRecord:
    """Return one epoch of a session, the current one by default, with its summaries.

    ``exported``: only these entries; see ``exported_entries``.
    ``is_streamed``: its entries can be iterated once, and are read from the database meanwhile.
    """
    epoch = session.epoch if epoch is None else epoch
    is_current = epoch == session.epoch
    summaries = list(Summary.objects.filter(session=session, epoch=epoch).order_by("first_position", "id"))
    names = {summary.pk: _name(summary.pk, summary.source_id) for summary in summaries}
    folding = {summary.parent_id for summary in summaries} | {
        summary.pk for summary in summaries if summary.entry_count or summary.source_id
    }
    entries = Entry.objects.filter(session=session, epoch=epoch).order_by("position")
    pointer = session.last_consolidated if is_current else 0
    if exported and entries.exclude(exported).exists():
        entries = entries.filter(exported)
        pointer = entries.filter(position__lt=pointer).count()
    records = (_entry(entry, names) for entry in entries.iterator(chunk_size=1000))
    return SessionRecord(
        key=session.key,
        entries=cast("list[EntryRecord]", records) if is_streamed else list(records),
        summaries=[_summary(summary, names) for summary in summaries if summary.pk in folding],
        pointer=pointer,
        summary_text=session.summary_text if is_current else "",
        title=session.title,
        created_at=session.created_at,
        updated_at=session.updated_at,
        is_visible_to_agent=session.is_visible_to_agent,
        note=session.note,
        epoch=epoch,
        parent_key=link_key(session.extra, "parent_key"),
        parent_call_id=session.parent_call_id,
        forked_from=link_key(session.extra, "forked_from"),
        extra=session.extra,
    )


def exported_entries(layout: str, own: str) -> Q:
    """Return which entries an export in a layout has, of a workspace with the layout ``own``.

    Other programs couldn't tell rewound entries from messages, nor injected ones, except those from their own files.
    """
    if layout == "hub":
        return Q()
    is_from_file = Q(is_injected=True, is_rewound=False) & ~Q(source_fields=[])
    return IN_CONVERSATION | is_from_file if program_of(layout) == own else IN_CONVERSATION


def _name(pk: int, source_id: str) -> str:
    return source_id or f"summary-{pk}"


def _entry(entry: Entry, names: dict[int, str]) -> EntryRecord:
    kinds: dict[str, EntryKind] = {
        "message": "message",
        "tool_call": "tool_call",
        "tool_result": "tool_result",
        "context": "context",
        "summary": "summary",
    }
    return EntryRecord(
        kind=kinds[entry.kind],
        role=entry.role,
        content=entry.content,
        source_hash=entry.source_hash,
        name=entry.name,
        tool_call_id=entry.tool_call_id,
        tool_calls=entry.tool_calls,
        occurred_at=entry.occurred_at,
        occurred_at_text=entry.occurred_at_text,
        token_count=entry.token_count,
        source_id=entry.source_id,
        summary_source_id=names.get(entry.summary_id or 0, ""),
        is_injected=entry.is_injected,
        is_rewound=entry.is_rewound,
        extra=entry.extra,
        source_fields=entry.source_fields,
    )


def _summary(summary: Summary, names: dict[int, str]) -> SummaryRecord:
    extra = {name: value for name, value in summary.extra.items() if name != "originalEntryIds"}
    if summary.parent_id:
        extra["parentId"] = names[summary.parent_id]
    return SummaryRecord(
        source_id=names[summary.pk],
        content=summary.content,
        entry_source_ids=summary.extra.get("originalEntryIds", []),
        token_count=summary.token_count,
        original_token_count=summary.original_token_count,
        created_at=summary.created_at,
        starts_at=summary.starts_at,
        ends_at=summary.ends_at,
        method=summary.method,
        model=summary.model,
        extra=extra,
    )


def all_sessions(workspace: Workspace, layout: str) -> Iterator[SessionRecord]:
    """Yield the sessions of a workspace by key, with the entries of an export; for a hub, with earlier epochs first.

    Their entries can be iterated once, and are read from the database meanwhile.
    """
    exported = exported_entries(layout, workspace.layout)
    for session in Session.objects.filter(workspace=workspace).order_by("key").iterator(chunk_size=200):
        earlier: list[int] = []
        if layout == "hub":
            entries = Entry.objects.filter(session=session, epoch__lt=session.epoch)
            earlier = sorted(set(entries.values_list("epoch", flat=True).distinct()))
        for epoch in [*earlier, session.epoch]:
            yield session_record(session, epoch=epoch, is_streamed=True, exported=exported)


def count_summaries(workspace: Workspace, *, with_earlier: bool) -> int:
    """Return the number of summaries that ``all_sessions`` yields."""
    rows = Summary.objects.filter(workspace=workspace)
    if not with_earlier:
        rows = rows.filter(epoch=F("session__epoch"))
    has_children = Exists(Summary.objects.filter(parent=OuterRef("pk"), epoch=OuterRef("epoch")))
    return rows.filter(Q(entry_count__gt=0) | ~Q(source_id="") | Q(has_children)).count()


def session_as_markdown(session: Session, *, epoch: int | None, originals: bool, zone: tzinfo) -> Iterator[str]:
    """Return one epoch of a session (default: the current one) as parts of Markdown, with summaries for entries.

    ``originals``: include the summarised turns. Times are in ``zone``. Which entries are shown, and where, is read at
    once; their texts are read when they are needed, with no query open between parts.
    """
    chosen = session.epoch if epoch is None else epoch
    record = session_record(session, epoch=chosen, is_streamed=True)
    return as_markdown.transcript(record, originals=originals, zone=zone, entries=_entries(session, chosen))


def _entries(session: Session, epoch: int) -> as_markdown.Entries:
    summaries = Summary.objects.filter(session=session, epoch=epoch).values_list("pk", "source_id")
    names = {pk: _name(pk, source_id) for pk, source_id in summaries}
    rows = Entry.objects.filter(session=session, epoch=epoch)
    positions: list[int] = []

    def shapes() -> Iterator[as_markdown.Shape]:
        columns = ("position", "is_injected", "is_rewound", "summary_id", "tool_call_id", "tool_calls")
        found = rows.order_by("position").values_list(*columns).iterator(chunk_size=1000)
        for position, is_injected, is_rewound, summary, answers, calls in found:
            positions.append(position)
            is_said = not (is_injected or is_rewound)
            ids = tuple(call["id"] for call in calls)
            yield as_markdown.Shape(is_said, names.get(summary or 0, ""), answers, ids)

    def read(numbers: Collection[int]) -> dict[int, EntryRecord]:
        wanted = {positions[number]: number for number in numbers}
        return {wanted[row.position]: _entry(row, names) for row in rows.filter(position__in=wanted)}

    return as_markdown.Entries(shapes(), read)
