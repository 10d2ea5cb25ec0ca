"""Appending entries: the one place where their tokens are counted and their positions given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from memoryhub.lib.gate import json_text
from memoryhub.lib.layouts.records import EntryRecord
from memoryhub.lib.tokens import count_tokens
from sessions_app.models import Entry, Session, Summary

BATCH_ROWS = 500


def append_entries(
    session: Session,
    records: Sequence[EntryRecord],
    *,
    epoch: int,
    first_position: int,
    now: datetime,
    summaries: Mapping[str, Summary] | None = None,
) -> None:
    """Write records as entries from ``first_position`` on. Totals are the caller's: see ``totals``.

    ``summaries``: by the agent's id, for records that one folds. Raises IntegrityError when a position is taken.
    """
    by_id = summaries or {}
    Entry.objects.bulk_create(
        (
            _entry(session, record, epoch, position, by_id.get(record.summary_source_id), now)
            for position, record in enumerate(records, first_position)
        ),
        batch_size=BATCH_ROWS,
    )


def count_entry_tokens(record: EntryRecord) -> int:
    """Return the source's own count, or that of content and tool calls."""
    if record.token_count is not None:
        return record.token_count
    calls = json_text([call["function"] for call in record.tool_calls]) if record.tool_calls else ""
    return count_tokens(record.content) + count_tokens(calls)


def hashes_in_order(session: Session, epoch: int) -> list[str]:
    rows: Iterable[str] = (
        Entry.objects.filter(session=session, epoch=epoch).order_by("position").values_list("source_hash", flat=True)
    )
    return list(rows)


def _entry(
    session: Session, record: EntryRecord, epoch: int, position: int, summary: Summary | None, now: datetime
) -> Entry:
    return Entry(
        workspace_id=session.workspace_id,
        session=session,
        epoch=epoch,
        position=position,
        kind=record.kind,
        role=record.role,
        content=record.content,
        name=record.name,
        tool_call_id=record.tool_call_id,
        tool_calls=record.tool_calls,
        token_count=count_entry_tokens(record),
        occurred_at=record.occurred_at,
        occurred_at_text=record.occurred_at_text,
        source_id=record.source_id,
        source_hash=record.source_hash,
        source_fields=record.source_fields,
        extra=record.extra,
        summary=summary,
        recorded_at=now,
    )
