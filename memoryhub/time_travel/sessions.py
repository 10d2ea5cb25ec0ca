"""Sessions at a moment: epoch, pointer, entries, summaries, and what was active in the context.

Entries count from when the hub recorded them. Pointers are rebuilt from the runs that moved them, summaries from
their rows (or from their run if undone since), epochs from audit records of restarts and from entries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Sum

from sessions_app.models import AuditRecord, Entry, Run, Session, Summary, Workspace

AT_ONCE = 200  # sessions per round of queries
ACTIONS = ("session.cleared", "session.consolidated", "session.compressed", "run.undone")
RUN = ("session", "kind", "status", "epoch", "from_position", "to_position", "finished_at")
KINDS = (Run.Kind.CONSOLIDATION, Run.Kind.COMPRESSION)


@dataclass(frozen=True)
class SummaryAt:
    """A summary at a moment. ``pk`` is None if it was undone since; its text is kept by ``run``.

    ``is_dated_by_source``: the time of its import is unknown; ``created_at`` comes from its source.
    """

    pk: int | None
    session: int
    epoch: int
    first_position: int
    last_position: int
    content: str
    created_at: datetime
    run: int | None
    entry_count: int
    is_dated_by_source: bool = False


@dataclass(frozen=True)
class SessionAt:
    """A session at a moment. Active figures (entries in the context) are None if unknown.

    ``entry_count`` and ``total_tokens`` count all epochs.
    """

    pk: int
    key: str
    epoch: int
    pointer: int
    entry_count: int
    total_tokens: int
    active_entry_count: int | None
    active_tokens: int | None
    summaries: tuple[SummaryAt, ...]
    latest_at: datetime | None


@dataclass(frozen=True)
class _Records:
    """Audit records of sessions up to a moment, by session or by run."""

    epochs: dict[int, int]
    consolidated: set[int]
    compressed: dict[int, tuple[datetime, int]]  # time, number of entries
    undone: set[int]


@dataclass
class _Counted:
    entries: int = 0
    tokens: int = 0
    epoch: int = 0
    latest_at: datetime | None = None


@dataclass(frozen=True)
class _Moves:
    """Pointers by session and epoch, and summaries that were undone since."""

    pointers: dict[tuple[int, int], int]
    undone: list[SummaryAt] = field(default_factory=list)


def known_sessions(workspace: Workspace, at: datetime) -> QuerySet[Session]:
    """Return the existing sessions that the hub knew at a moment: opened here, or with entries, by then.

    Sessions imported without entries have no known time: see ``undated_sessions``.
    """
    entries = Entry.objects.filter(session=OuterRef("pk"), recorded_at__lte=at)
    opened = AuditRecord.objects.filter(session=OuterRef("pk"), action="session.opened", at__lte=at)
    return Session.objects.filter(Exists(entries) | Exists(opened), workspace=workspace)


def undated_sessions(workspace: Workspace) -> QuerySet[Session]:
    """Return the sessions whose time of import is unknown."""
    entries = Entry.objects.filter(session=OuterRef("pk"))
    opened = AuditRecord.objects.filter(session=OuterRef("pk"), action="session.opened")
    return Session.objects.filter(~Exists(entries), ~Exists(opened), workspace=workspace)


def sessions_at(sessions: Iterable[Session], at: datetime) -> list[SessionAt]:
    """Return sessions of one workspace at a moment. Five queries per 200 sessions."""
    rows = list(sessions)
    return [
        session for start in range(0, len(rows), AT_ONCE) for session in _some_at(rows[start : start + AT_ONCE], at)
    ]


def _some_at(rows: Sequence[Session], at: datetime) -> list[SessionAt]:
    if not rows:
        return []
    pks = [row.pk for row in rows]
    newest = {row.pk: row.epoch for row in rows}
    records, counted = _records(pks, at), _counted(newest, at)
    moves = _moves(pks, records, at)
    epochs = {pk: max(counted[pk].epoch, records.epochs.get(pk, 0)) for pk in pks}
    pointers = {pk: moves.pointers.get((pk, epochs[pk]), 0) for pk in pks}
    summaries, later = _summaries(pks, moves.undone, at)
    touched = {one.session for one in moves.undone} | later
    still = {
        row.pk: (row.active_entry_count, row.active_tokens)
        for row in rows
        if row.pk not in touched
        and (row.epoch, row.last_consolidated) == (epochs[row.pk], pointers[row.pk])
        and row.entry_count == counted[row.pk].entries
    }
    moved = {pk: epoch for pk, epoch in epochs.items() if pk not in still}
    active = still | _active(moved, pointers, moves.undone, at)
    return [_session(row, counted[row.pk], epochs, pointers, summaries[row.pk], active) for row in rows]


def _session(
    row: Session,
    counted: _Counted,
    epochs: dict[int, int],
    pointers: dict[int, int],
    summaries: Sequence[SummaryAt],
    active: dict[int, tuple[int, int]],
) -> SessionAt:
    is_open = any(summary.is_dated_by_source for summary in summaries)
    entries, tokens = active.get(row.pk, (0, 0))
    return SessionAt(
        pk=row.pk,
        key=row.key,
        epoch=epochs[row.pk],
        pointer=pointers[row.pk],
        entry_count=counted.entries,
        total_tokens=counted.tokens,
        active_entry_count=None if is_open else entries,
        active_tokens=None if is_open else tokens,
        summaries=tuple(summaries),
        latest_at=counted.latest_at,
    )


def _records(pks: Collection[int], at: datetime) -> _Records:
    rows = AuditRecord.objects.filter(session__in=pks, action__in=ACTIONS, at__lte=at).order_by("id")
    records = _Records({}, set(), {}, set())
    for action, session, name, detail, moment in rows.values_list(
        "action", "session_id", "object_id", "detail", "at"
    ):
        if action == "session.cleared":
            records.epochs[session] = int(detail.get("epoch", 0))
        elif action == "session.consolidated":
            records.consolidated.add(int(name))
        elif action == "session.compressed":
            records.compressed[int(detail.get("run", 0))] = (moment, int(detail.get("entries", 0)))
        else:
            records.undone.add(int(name))
    return records


def _counted(newest: dict[int, int], at: datetime) -> dict[int, _Counted]:
    """Count each session's entries and find its newest epoch; epochs above the present one were never current."""
    found: defaultdict[int, _Counted] = defaultdict(_Counted)
    entries = Entry.objects.filter(session__in=newest, recorded_at__lte=at)
    groups = entries.order_by().values_list("session", "epoch")
    for pk, epoch, count, tokens, latest in groups.annotate(
        n=Count("id"), tokens=Sum("token_count"), latest=Max("recorded_at")
    ):
        one = found[pk]
        one.entries += count
        one.tokens += tokens
        one.epoch = max(one.epoch, epoch) if epoch <= newest[pk] else one.epoch
        one.latest_at = max(one.latest_at or latest, latest)
    return found


def _moves(pks: Collection[int], records: _Records, at: datetime) -> _Moves:
    """Replay the runs: a finished run counts from its end; an undone one from its record until the undo."""
    settled = (Run.Status.DONE, Run.Status.UNDONE)
    runs = Run.objects.filter(session__in=pks, kind__in=KINDS, status__in=settled, to_position__gt=0).only(*RUN)
    moves = _Moves({})
    for run in runs.order_by("id"):
        if not _had_effect(run, records, at):
            continue
        if run.kind == Run.Kind.CONSOLIDATION:
            place = (run.session_id or 0, run.epoch)
            moves.pointers[place] = max(moves.pointers.get(place, 0), run.to_position)
        elif run.status == Run.Status.UNDONE:
            moves.undone.append(_undone_summary(run, *records.compressed[run.pk]))
    return moves


def _had_effect(run: Run, records: _Records, at: datetime) -> bool:
    if run.status == Run.Status.DONE:
        return run.finished_at is not None and run.finished_at <= at
    return run.pk in records.consolidated | records.compressed.keys() and run.pk not in records.undone


def _undone_summary(run: Run, made_at: datetime, entry_count: int) -> SummaryAt:
    return SummaryAt(
        pk=None,
        session=run.session_id or 0,
        epoch=run.epoch,
        first_position=run.from_position,
        last_position=run.to_position - 1,
        content=str(run.proposal.get("text", "")),
        created_at=made_at,
        run=run.pk,
        entry_count=entry_count,
    )


def _summaries(
    pks: Collection[int], undone: Sequence[SummaryAt], at: datetime
) -> tuple[dict[int, list[SummaryAt]], set[int]]:
    """Return each session's summaries, and the sessions that got more since."""
    found: dict[int, list[SummaryAt]] = {pk: [] for pk in pks}
    later: set[int] = set()
    rows = Summary.objects.filter(session__in=pks).order_by("epoch", "first_position", "id")
    for row in rows.defer("extra"):
        if row.source_id or row.created_at <= at:
            found[row.session_id].append(_summary(row))
        else:
            later.add(row.session_id)
    for summary in undone:
        found[summary.session].append(summary)
    return found, later


def _summary(row: Summary) -> SummaryAt:
    return SummaryAt(
        pk=row.pk,
        session=row.session_id,
        epoch=row.epoch,
        first_position=row.first_position,
        last_position=row.last_position,
        content=row.content,
        created_at=row.created_at,
        run=row.run_id,
        entry_count=row.entry_count,
        is_dated_by_source=bool(row.source_id),
    )


def _active(
    epochs: dict[int, int], pointers: dict[int, int], undone: Sequence[SummaryAt], at: datetime
) -> dict[int, tuple[int, int]]:
    """Return the number and tokens of active entries (past the pointer, in no summary) by session.

    Only for sessions that changed since; for the others, the present figures hold.
    """
    if not epochs:
        return {}
    places = Q(pk__in=[])
    for pk, epoch in epochs.items():
        places |= Q(session=pk, epoch=epoch, position__gte=pointers[pk])
    folded = Q(pk__in=[])
    for session, epoch, positions in _merged_ranges(undone):
        folded |= Q(session=session, epoch=epoch, position__range=positions)
    loose = Q(summary=None) | Q(summary__created_at__gt=at)
    entries = Entry.objects.in_conversation().filter(places, loose, ~folded, recorded_at__lte=at)
    groups: Any = entries.order_by().values_list("session").annotate(n=Count("id"), tokens=Sum("token_count"))
    return {pk: (count, tokens) for pk, count, tokens in groups}


def _merged_ranges(undone: Sequence[SummaryAt]) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Yield the summarised ranges, adjacent ones merged: session, epoch, (first, last)."""
    own = [one for one in undone if one.entry_count]  # the others summarise summaries
    ranges = sorted((one.session, one.epoch, one.first_position, one.last_position) for one in own)
    for (session, epoch), found in groupby(ranges, key=lambda one: one[:2]):
        (_, _, first, last), *rest = found
        for _, _, start, end in rest:
            if start > last + 1:
                yield session, epoch, (first, last)
                first = start
            last = max(last, end)
        yield session, epoch, (first, last)


def touched_sessions(workspace: Workspace, first: datetime, second: datetime) -> QuerySet[Session]:
    """Return the sessions that changed after ``first``, up to ``second``."""
    entries = Entry.objects.filter(session=OuterRef("pk"), recorded_at__gt=first, recorded_at__lte=second)
    records = AuditRecord.objects.filter(session=OuterRef("pk"), at__gt=first, at__lte=second)
    moved = Run.objects.filter(session=OuterRef("pk"), finished_at__gt=first, finished_at__lte=second)
    return known_sessions(workspace, second).filter(Exists(entries) | Exists(records) | Exists(moved))
