"""Taking a conversation from a file: add what is new, keep all there was."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import Problem, SessionRecord, SummaryRecord
from memoryhub.lib.text.list_alignment import Alignment, align
from memoryhub.lib.tokens import count_tokens
from sessions_app.models import DeletedSession, Entry, Run, Session, SourceFile, Summary, Workspace
from sessions_app.models.conversations import KEY_LENGTH
from sessions_app.services.entries import BATCH_ROWS, hashes_in_order, lock_session, write_entries
from sessions_app.services.lifecycle import forgotten_key
from sessions_app.services.sources import find_source
from sessions_app.services.totals import recount_session

NEW_EPOCH = ("restarted", "rewritten")


@dataclass(frozen=True)
class SessionPlan:
    """What taking one record will do: its entries from ``alignment.append_from`` on go to ``epoch``."""

    session: Session | None
    epoch: int
    alignment: Alignment
    first_position: int
    is_current: bool
    opens_epoch: bool = False
    is_named: bool = False  # the source itself says so: nothing to report
    alike: int = 0  # entries at the beginning that equal those of an epoch, before the file parts from it


def import_conversation(
    *, workspace: Workspace, record: SessionRecord, path: str, now: datetime, dry_run: bool
) -> tuple[ImportCounts, SourceFile | None]:
    """Add one file's conversation to the hub, in one transaction; taking it again adds and changes nothing.

    The file is compared with the epoch that it feeds (reliability: pruned and restarted files delete nothing): a
    longer file appends, a pruned one is aligned by its overlap, one that begins anew opens an epoch. Returns the
    tally and the source file's row, unsaved facts left to the caller.
    """
    if not record.key or len(record.key) > KEY_LENGTH:
        problem = f"the session key is {'empty' if not record.key else f'longer than {KEY_LENGTH} characters'}"
        return ImportCounts(problems=[Problem(path, None, problem, "not taken", "rejected")]), None
    keys = [record.key, forgotten_key(workspace, record.key)]
    if tombstone := DeletedSession.objects.filter(workspace_id=workspace.pk, key__in=keys).first():
        return ImportCounts(problems=[_deleted(tombstone, path)]), None
    if dry_run:
        return _tally(plan_session(workspace, record, find_source(workspace, path)), record, path), None
    with transaction.atomic():
        source = find_source(workspace, path)
        plan = plan_session(workspace, record, source, lock=True)
        tally = _tally(plan, record, path)
        session = apply_session(workspace, record, plan, tally, now)
        recount_needed = tally.added["entries"] or tally.added["summaries"] or tally.updated["sessions"]
        if recount_needed or plan.session is None:
            recount_session(session)
        source = source or SourceFile(workspace=workspace, path=path)
        source.session, source.epoch = session, plan.epoch
    return tally, source


def _deleted(tombstone: DeletedSession, path: str) -> Problem:
    name = "a session" if tombstone.is_forgotten else tombstone.key
    what = f"holds {name} that {tombstone.deleted_by} deleted from the hub"
    return Problem(path, None, what, "not taken; an operator can allow it again on the page of sessions", "ignored")


def plan_session(
    workspace: Workspace, record: SessionRecord, source: SourceFile | None, *, lock: bool = False
) -> SessionPlan:
    """Decide which epoch a record feeds and where it continues. Reads only.

    With ``lock``, inside a transaction, nobody else appends to the session until it ends.
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
    if source is None and (own := _plan_said(session, record, epochs)):
        return own
    newest = max([session.epoch, *epochs]) + 1
    takes_over = record.is_visible_to_agent or not session.is_visible_to_agent
    return SessionPlan(
        session, newest, Alignment("restarted", 0), 0, is_current=takes_over, opens_epoch=True, alike=alike
    )


def _plan_said(session: Session, record: SessionRecord, epochs: Iterable[int]) -> SessionPlan | None:
    """Plan for a file that the hub itself wrote of a session: its entries are known by what was said, not by how.

    None where even so it is another conversation.
    """
    new = [said_hash(entry.role, entry.content, entry.tool_call_id) for entry in record.entries]
    for epoch in epochs:
        rows = Entry.objects.filter(session=session, epoch=epoch).order_by("position")
        kept = [said_hash(*said) for said in rows.values_list("role", "content", "tool_call_id").iterator()]
        alignment = align(kept, new, unique_hashes=False)
        if alignment.verdict not in NEW_EPOCH:
            return SessionPlan(session, epoch, alignment, len(kept), is_current=epoch == session.epoch)
    return None


def said_hash(role: str, content: str, tool_call_id: str) -> str:
    """Return by what an entry is known whichever program's file it comes from."""
    return hashlib.sha256(f"{role}\0{tool_call_id}\0{content}".encode()).hexdigest()


def _plan_named(session: Session, epoch: int, hashes: list[str]) -> SessionPlan | None:
    """Plan for a source that says which epoch it holds; None where the hub keeps another conversation as that one."""
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
        what = f"begins anew: none of its entries continue the {_entries(plan.session)} kept before"
        if plan.alike:
            what = f"was rewritten: it differs from what was kept after the first {plan.alike} entries"
        action = f"taken as epoch {plan.epoch + 1} of the session; the earlier entries stay readable"
        tally.problems.append(Problem(path, None, what, action, "noted"))
    elif plan.alignment.verdict == "shorter":
        what = f"holds {len(record.entries)} of the {plan.first_position} entries that the hub keeps"
        tally.problems.append(Problem(path, None, what, "nothing is removed from the hub", "held"))
    return tally


def _entries(session: Session | None) -> str:
    return f"{session.entry_count} entries" if session else "entries"


def apply_session(
    workspace: Workspace, record: SessionRecord, plan: SessionPlan, tally: ImportCounts, now: datetime
) -> Session:
    """Write what a plan says. Call inside a transaction; raises IntegrityError when another import was first."""
    session, is_changed = _open(workspace, record, plan, now)
    summaries = _take_summaries(session, record, plan.epoch, tally, now)
    written = write_entries(
        session,
        record.entries[plan.alignment.append_from :],
        epoch=plan.epoch,
        first_position=plan.first_position,
        now=now,
        summaries=summaries,
    )
    is_changed |= bool(_link_kept_entries(session, record, plan, summaries))
    _measure_summaries(summaries.values())
    session.entry_count += len(written)
    if plan.is_current:
        session.next_position = plan.first_position + len(written)
        session.save(update_fields=["entry_count", "next_position"])
        is_changed |= _move_pointer(session, record, plan, now)
    if plan.session is not None:
        tally.updated["sessions"] += is_changed
        tally.unchanged["sessions"] += not is_changed
    return session


def _open(workspace: Workspace, record: SessionRecord, plan: SessionPlan, now: datetime) -> tuple[Session, bool]:
    """Create the session, or bring its own fields in line with the record; tell whether they changed."""
    times = [entry.occurred_at for entry in record.entries if entry.occurred_at]
    updated_at = record.updated_at or max(times, default=None)
    values: dict[str, Any] = {
        "title": record.title,
        "summary_text": record.summary_text,
        "is_visible_to_agent": record.is_visible_to_agent,
        "note": record.note,
        "extra": record.extra,
        "updated_at": updated_at,
    }
    if plan.session is None:
        values |= {
            "updated_at": updated_at or now,
            "created_at": record.created_at or min(times, default=None) or updated_at or now,
        }
        channel, colon, _ = record.key.partition(":")
        return Session.objects.create(
            workspace=workspace, key=record.key, channel=channel if colon else "", epoch=plan.epoch, **values
        ), False
    session = plan.session
    if not plan.is_current:
        return session, False
    if updated_at is None:
        del values["updated_at"]
    if plan.opens_epoch:
        values |= {"epoch": plan.epoch, "last_consolidated": 0}
    changed = [name for name, value in values.items() if getattr(session, name) != value]
    for name in changed:
        setattr(session, name, values[name])
    if changed:
        session.save(update_fields=changed)
    return session, bool(changed)


def _move_pointer(session: Session, record: SessionRecord, plan: SessionPlan, now: datetime) -> bool:
    """Follow the agent's pointer, forward only: each step it took is a run of its own."""
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


def _take_summaries(
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


def _link_kept_entries(
    session: Session, record: SessionRecord, plan: SessionPlan, summaries: Mapping[str, Summary]
) -> int:
    """Fold entries that were active at the last import and are not by now; return how many."""
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


def _measure_summaries(summaries: Collection[Summary]) -> None:
    """Set what a summary spans from its entries; one that folds others spans what they do."""
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
