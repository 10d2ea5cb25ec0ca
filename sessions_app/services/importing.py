"""Import a conversation from a file: add new entries, keep all existing ones."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db import transaction

from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import Problem, SessionRecord, ToolCall
from memoryhub.lib.text.list_alignment import Alignment, align
from memoryhub.lib.validation import is_visible_line
from sessions_app.models import DeletedSession, Entry, Run, Session, SourceFile, Summary, Workspace
from sessions_app.models.conversations import KEY_LENGTH
from sessions_app.services.entries import BATCH_ROWS, hashes_in_order, lock_session, write_entries
from sessions_app.services.file_values import remember_values
from sessions_app.services.imported_sessions import (
    SessionPlan,
    add_summaries,
    is_older_copy,
    measure_summaries,
    save_session,
    session_values,
)
from sessions_app.services.importing_by_id import apply_by_id, count_by_id, plan_by_id
from sessions_app.services.sources import find_source
from sessions_app.services.tombstones import tombstone_of
from sessions_app.services.totals import recount_session

NEW_EPOCH = ("restarted", "rewritten")


def import_conversation(
    *, workspace: Workspace, record: SessionRecord, path: str, now: datetime, dry_run: bool
) -> tuple[ImportCounts, SourceFile | None]:
    """Import one file's conversation in one transaction. Idempotent.

    The file is compared with the epoch that it belongs to: a longer file appends, a pruned one is aligned by its
    overlap, a restarted one opens a new epoch; none deletes anything. Records with ids of their own are found by them
    instead (see ``importing_by_id``). Returns the counts and the source file's row, which the caller completes and
    saves.
    """
    if not record.key or len(record.key) > KEY_LENGTH:
        problem = f"the session key is {'empty' if not record.key else f'longer than {KEY_LENGTH} characters'}"
        return ImportCounts(problems=[Problem(path, None, problem, "not imported", "rejected")]), None
    if not is_visible_line(record.key):
        problem = "the session key is blank, or has line breaks or direction overrides"
        return ImportCounts(problems=[Problem(path, None, problem, "not imported", "rejected")]), None
    if tombstone := tombstone_of(workspace, record):
        return ImportCounts(problems=[_deleted(tombstone, path)]), None
    if record.is_by_id:
        return _import_by_id(workspace, record, path, now, dry_run=dry_run)
    if dry_run:
        return _tally(plan_session(workspace, record, find_source(workspace, path)), record, path), None
    with transaction.atomic():
        source = find_source(workspace, path)
        plan = plan_session(workspace, record, source, lock=True)
        tally = _tally(plan, record, path)
        values = session_values(record, plan, source, tally, path)
        session = apply_session(workspace, record, plan, tally, now, values)
        recount_needed = tally.added["entries"] or tally.added["summaries"] or tally.updated["sessions"]
        if recount_needed or plan.session is None:
            recount_session(session)
        source = source or SourceFile(workspace=workspace, path=path)
        if plan.is_current and not is_older_copy(record, plan):
            remember_values(source, record)
        source.session, source.epoch = session, plan.epoch
    return tally, source


def _import_by_id(
    workspace: Workspace, record: SessionRecord, path: str, now: datetime, *, dry_run: bool
) -> tuple[ImportCounts, SourceFile | None]:
    if dry_run:
        return count_by_id(plan_by_id(workspace, record), record, path), None
    with transaction.atomic():
        source = find_source(workspace, path)
        plan = plan_by_id(workspace, record, lock=True)
        counts = count_by_id(plan, record, path)
        values = session_values(record, plan.session, source, counts, path)
        session = apply_by_id(workspace, record, plan, counts, now, values)
        if +counts.added or +counts.updated:
            recount_session(session)
        source = source or SourceFile(workspace=workspace, path=path)
        if plan.session.is_current and not is_older_copy(record, plan.session):
            remember_values(source, record)
        source.session, source.epoch = session, plan.session.epoch
    return counts, source


def _deleted(tombstone: DeletedSession, path: str) -> Problem:
    name = "a session" if tombstone.is_forgotten else tombstone.key
    what = f"holds {name} that {tombstone.deleted_by} deleted from the hub"
    return Problem(path, None, what, "skipped; an operator can allow it again on the Sessions page", "ignored")


def plan_session(
    workspace: Workspace, record: SessionRecord, source: SourceFile | None, *, lock: bool = False
) -> SessionPlan:
    """Decide which epoch a record belongs to and where it continues. Reads only.

    ``lock``: lock the session until the end of the transaction.
    """
    hashes = [entry.source_hash for entry in record.entries]
    unique_hashes = all(entry.occurred_at_text for entry in record.entries)
    session = Session.objects.filter(workspace_id=workspace.pk, key=record.key).first() if workspace.pk else None
    if session is None:
        return SessionPlan(None, record.epoch or 0, Alignment("grown", 0), 0, is_current=True)
    if lock:
        session = lock_session(session.pk)
    if record.epoch is not None and (named := _plan_named(session, record.epoch, hashes)):
        return named
    epochs = Entry.objects.filter(session=session).order_by("-epoch").values_list("epoch", flat=True).distinct()
    known = [source.epoch] if source and source.session_id == session.pk else list(epochs)
    alike = 0
    for epoch in known or [session.epoch]:
        kept = hashes_in_order(session, epoch)
        alignment = align(kept, hashes, unique_hashes=unique_hashes)
        if alignment.verdict not in NEW_EPOCH:
            return SessionPlan(session, epoch, alignment, len(kept), is_current=epoch == session.epoch)
        alike = max(alike, alignment.append_from)
    if rewritten := _plan_by_content(session, record, known, is_rewritten=True):
        return rewritten
    if source is None and (own := _plan_by_content(session, record, epochs)):
        return own
    newest = max([session.epoch, *epochs]) + 1
    takes_over = record.is_visible_to_agent or not session.is_visible_to_agent
    return SessionPlan(
        session, newest, Alignment("restarted", 0), 0, is_current=takes_over, opens_epoch=True, alike=alike
    )


def _plan_by_content(
    session: Session, record: SessionRecord, epochs: Iterable[int], *, is_rewritten: bool = False
) -> SessionPlan | None:
    """Plan a file whose records aren't those imported, comparing entries by what they say; None if that differs.

    It is one that the hub itself exported, or, if ``is_rewritten``, one that another version of its program wrote
    again: then the calls are compared, too, and the times, if there are any.
    """
    is_unique = is_rewritten and all(entry.occurred_at for entry in record.entries)
    fields = ("role", "content", "tool_call_id", "occurred_at", "occurred_at_text", "tool_calls")
    new = [
        _said_hash(*(getattr(entry, name) for name in fields), is_rewritten=is_rewritten) for entry in record.entries
    ]
    for epoch in epochs:
        rows = Entry.objects.filter(session=session, epoch=epoch).order_by("position").values_list(*fields)
        kept = [_said_hash(*said, is_rewritten=is_rewritten) for said in rows.iterator()]
        alignment = align(kept, new, unique_hashes=is_unique)
        if alignment.verdict not in NEW_EPOCH:
            return SessionPlan(session, epoch, alignment, len(kept), is_current=epoch == session.epoch)
    return None


def content_hash_of(role: str, content: str, tool_call_id: str) -> str:
    """Return a hash of an entry's content that is the same in every program's format."""
    return hashlib.sha256(f"{role}\0{tool_call_id}\0{content}".encode()).hexdigest()


def _said_hash(
    role: str,
    content: str,
    call_id: str,
    occurred_at: datetime | None,
    time_text: str,
    calls: Sequence[ToolCall],
    *,
    is_rewritten: bool,
) -> str:
    said = content_hash_of(role, content, call_id)
    if not is_rewritten:
        return said
    return " ".join(
        [said, str(occurred_at.timestamp() if occurred_at else time_text), *(call["id"] for call in calls)]
    )


def _plan_named(session: Session, epoch: int, hashes: list[str]) -> SessionPlan | None:
    """Plan a source that names its epoch; None if the hub has another conversation in that epoch."""
    kept = hashes_in_order(session, epoch)
    alignment = align(kept, hashes, unique_hashes=True)
    if alignment.verdict in NEW_EPOCH:
        return None
    is_newer = epoch > session.epoch
    return SessionPlan(
        session, epoch, alignment, len(kept), is_current=epoch >= session.epoch, opens_epoch=is_newer, is_named=True
    )


def _tally(plan: SessionPlan, record: SessionRecord, path: str) -> ImportCounts:
    tally = ImportCounts()
    added = len(record.entries) - plan.alignment.append_from
    tally.added["entries"] += added
    tally.unchanged["entries"] += len(record.entries) - added
    tally.added["sessions"] += plan.session is None
    if plan.opens_epoch and not plan.is_named:
        what = f"session restarted: it doesn't continue the {_messages(plan.session)} imported before"
        if plan.alike:
            what = f"session was rewritten: it differs after the first {plan.alike} messages"
        action = f"imported as part {plan.epoch + 1} of the session; earlier messages stay readable"
        tally.problems.append(Problem(path, None, what, action, "noted"))
    elif plan.alignment.verdict == "shorter":
        what = f"has {len(record.entries)} of the {plan.first_position} messages in the hub"
        tally.problems.append(Problem(path, None, what, "nothing is removed from the hub", "held"))
    return tally


def _messages(session: Session | None) -> str:
    return f"{session.entry_count} messages" if session else "messages"


def apply_session(
    workspace: Workspace,
    record: SessionRecord,
    plan: SessionPlan,
    tally: ImportCounts,
    now: datetime,
    values: Mapping[str, str],
) -> Session:
    """Apply a plan, inside a transaction. Raises IntegrityError if another import was faster."""
    session, is_changed = save_session(workspace, record, plan, now, values)
    summaries = add_summaries(session, record, plan.epoch, tally, now)
    written = write_entries(
        session,
        record.entries[plan.alignment.append_from :],
        epoch=plan.epoch,
        first_position=plan.first_position,
        now=now,
        summaries=summaries,
    )
    is_changed |= bool(_link_kept_entries(session, record, plan, summaries))
    measure_summaries(summaries.values())
    session.entry_count += len(written)
    if plan.is_current:
        session.next_position = plan.first_position + len(written)
        session.save(update_fields=["entry_count", "next_position"])
        is_changed |= _move_pointer(session, record, plan, now)
    if plan.session is not None:
        tally.updated["sessions"] += is_changed
        tally.unchanged["sessions"] += not is_changed
    return session


def _move_pointer(session: Session, record: SessionRecord, plan: SessionPlan, now: datetime) -> bool:
    """Follow the agent's pointer, forward only; each move is recorded as a run."""
    if plan.alignment.verdict == "shorter":
        return False
    target = plan.alignment.offset + record.pointer
    start = session.last_consolidated
    if target <= start:
        return False
    Run.objects.create(
        workspace_id=session.workspace_id,
        session=session,
        kind=Run.Kind.CONSOLIDATION,
        status=Run.Status.DONE,
        origin=Run.Origin.AGENT,
        epoch=plan.epoch,
        from_position=start,
        to_position=target,
        requested_by="the agent",
        created_at=now,
        finished_at=now,
    )
    session.last_consolidated = target
    session.save(update_fields=["last_consolidated"])
    return True


def _link_kept_entries(
    session: Session, record: SessionRecord, plan: SessionPlan, summaries: Mapping[str, Summary]
) -> int:
    """Link entries that the agent has summarised since the last import; return their number."""
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(record.entries[: plan.alignment.append_from]):
        if item.summary_source_id in summaries:
            positions[item.summary_source_id].append(plan.alignment.offset + place)
    active = Entry.objects.filter(session=session, epoch=plan.epoch, summary=None)
    return sum(
        active.filter(position__in=some[start : start + BATCH_ROWS]).update(summary=summaries[name])
        for name, some in positions.items()
        for start in range(0, len(some), BATCH_ROWS)
    )
