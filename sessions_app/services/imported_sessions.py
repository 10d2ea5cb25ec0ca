"""Sessions and summaries as an import creates and updates them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import UNKNOWN_RECORDS, SessionRecord, SummaryRecord
from memoryhub.lib.text.list_alignment import Alignment
from memoryhub.lib.tokens import count_tokens
from sessions_app.models import Entry, Session, SourceFile, Summary, Workspace
from sessions_app.models.conversations import KEY_LENGTH, channel_of
from sessions_app.services.file_values import MERGED, merged_values
from sessions_app.services.session_links import stored_links


@dataclass(frozen=True)
class SessionPlan:
    """What importing a record will do: entries from ``alignment.append_from`` on are appended to ``epoch``."""

    session: Session | None
    epoch: int
    alignment: Alignment
    first_position: int
    is_current: bool
    opens_epoch: bool = False
    is_named: bool = False  # stated by the source: nothing to report
    alike: int = 0  # leading entries that equal an epoch's before the file diverges


def is_older_copy(record: SessionRecord, plan: SessionPlan) -> bool:
    """Tell whether a file is shorter and older than the session, such as a restored backup or a copy beside it."""
    if plan.session is None or plan.alignment.verdict != "shorter":
        return False
    updated_at = _updated_at(record)
    return updated_at is not None and updated_at < plan.session.updated_at


def _updated_at(record: SessionRecord) -> datetime | None:
    times = (entry.occurred_at for entry in record.entries if entry.occurred_at)
    return record.updated_at or max(times, default=None)


def session_values(
    record: SessionRecord, plan: SessionPlan, source: SourceFile | None, tally: ImportCounts, path: str
) -> dict[str, str]:
    """Return the values in which the file doesn't simply win."""
    if plan.session is None or not plan.is_current:
        return {}
    if is_older_copy(record, plan):
        return {name: getattr(plan.session, name) for name in MERGED}
    values, problems = merged_values(plan.session, record, source, path)
    if plan.opens_epoch:
        return {"title": values["title"]}
    tally.problems += problems
    return values


def save_session(
    workspace: Workspace, record: SessionRecord, plan: SessionPlan, now: datetime, own: Mapping[str, Any]
) -> tuple[Session, bool]:
    """Create the session or update its fields; return whether they changed."""
    times = [entry.occurred_at for entry in record.entries if entry.occurred_at]
    updated_at = _updated_at(record)
    values: dict[str, Any] = {
        "title": record.title,
        "summary_text": record.summary_text,
        "is_visible_to_agent": record.is_visible_to_agent,
        "note": record.note,
        "extra": _placed(record.extra, plan.alignment.offset) | stored_links(record),
        "parent_call_id": record.parent_call_id[:KEY_LENGTH],
        "missing_since": None,
        "updated_at": updated_at,
        **own,
    }
    if plan.session is None:
        values |= {
            "updated_at": updated_at or now,
            "created_at": record.created_at or min(times, default=None) or updated_at or now,
        }
        return Session.objects.create(
            workspace=workspace, key=record.key, channel=channel_of(record.key), epoch=plan.epoch, **values
        ), False
    session = plan.session
    if not plan.is_current:
        return session, False
    if is_older_copy(record, plan):
        del values["updated_at"], values["extra"]
    elif updated_at is None:
        del values["updated_at"]
    if plan.opens_epoch:
        values |= {"epoch": plan.epoch, "last_consolidated": 0}
    changed = [name for name, value in values.items() if getattr(session, name) != value]
    for name in changed:
        setattr(session, name, values[name])
    if changed:
        session.save(update_fields=changed)
    return session, bool(changed)


def _placed(extra: dict[str, Any], offset: int) -> dict[str, Any]:
    """Return a file's extra fields, with the places of its unknown records counted from the epoch's first entry."""
    kept = extra.get(UNKNOWN_RECORDS)
    if not offset or not isinstance(kept, list):
        return extra
    pairs = [pair for pair in kept if isinstance(pair, list) and pair and type(pair[0]) is int]
    return extra | {UNKNOWN_RECORDS: [[place + offset, *more] for place, *more in pairs]}


def add_summaries(
    session: Session, record: SessionRecord, epoch: int, tally: ImportCounts, now: datetime
) -> dict[str, Summary]:
    if not record.summaries:
        return {}
    kept = {summary.source_id: summary for summary in Summary.objects.filter(session=session, epoch=epoch)}
    new = [_summary(session, item, epoch, now) for item in record.summaries if item.source_id not in kept]
    Summary.objects.bulk_create(new)
    tally.added["summaries"] += len(new)
    tally.unchanged["summaries"] += len(record.summaries) - len(new)
    known = kept | {summary.source_id: summary for summary in new}
    for summary in new:
        parent = known.get(str(summary.extra.get("parentId", "")))
        if parent and parent != summary:
            summary.parent = parent
            summary.save(update_fields=["parent"])
    return known


def _summary(session: Session, item: SummaryRecord, epoch: int, now: datetime) -> Summary:
    tokens = item.token_count if item.token_count is not None else count_tokens(item.content)
    return Summary(
        workspace_id=session.workspace_id,
        session=session,
        epoch=epoch,
        content=item.content,
        method=item.method or Summary.Method.IMPORTED,
        model=item.model,
        token_count=tokens,
        original_token_count=item.original_token_count or 0,
        entry_count=0,
        first_position=0,
        last_position=0,
        starts_at=item.starts_at,
        ends_at=item.ends_at,
        source_id=item.source_id,
        extra=item.extra | {"originalEntryIds": item.entry_source_ids},
        created_at=item.created_at or now,
    )


def measure_summaries(summaries: Collection[Summary]) -> None:
    """Set a summary's range from its entries, or from the summaries that it merges."""
    for summary in summaries:
        positions = list(
            Entry.objects.filter(summary=summary).order_by("position").values_list("position", "token_count")
        )
        if not positions or summary.entry_count == len(positions):
            continue
        summary.entry_count = len(positions)
        summary.first_position, summary.last_position = positions[0][0], positions[-1][0]
        summary.original_token_count = summary.original_token_count or sum(tokens for _, tokens in positions)
        summary.save()
    for parent in {summary.parent for summary in summaries if summary.parent}:
        spans = [(child.first_position, child.last_position) for child in summaries if child.parent_id == parent.pk]
        parent.first_position, parent.last_position = min(spans)[0], max(last for _, last in spans)
        parent.save(update_fields=["first_position", "last_position"])
