"""Import a conversation whose records have ids of their own, which several files may repeat.

A record that any session of the workspace has isn't added again. A record that came again with another content is
added as its newer version, and the earlier one is marked as rewound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Any, NamedTuple

from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import EntryRecord, Problem, SessionRecord
from memoryhub.lib.text.list_alignment import Alignment
from sessions_app.models import Entry, Session, Summary, Workspace
from sessions_app.services.entries import BATCH_ROWS, lock_session, write_entries
from sessions_app.services.imported_sessions import SessionPlan, add_summaries, measure_summaries, save_session
from sessions_app.services.tombstones import repeated_records

FORKED_AT = "forked_at"  # in Session.extra: the id of the last entry that a fork shares with its original
Identity = tuple[str, str]  # id and hash of a record


class KnownEntry(NamedTuple):
    pk: int
    epoch: int
    source_id: str
    source_hash: str
    is_rewound: bool
    summary_id: int | None


@dataclass(frozen=True)
class IdPlan:
    """What importing a record will do: append ``new`` entries, and set ``is_rewound`` of existing ones by ``marks``.

    ``known``: the session's entries. ``lacks_entries``: the file no longer has all of them. ``deleted_count``:
    how many records it repeats from sessions that were deleted before the hub knew it as their fork. ``forked_at``:
    the id of the last record that the file repeats from another session before its own.
    """

    session: SessionPlan
    new: list[EntryRecord]
    marks: dict[int, bool]
    known: dict[Identity, KnownEntry]
    lacks_entries: bool
    deleted_count: int = 0
    forked_at: str = ""


def plan_by_id(workspace: Workspace, record: SessionRecord, *, lock: bool = False) -> IdPlan:
    """Decide which entries of a record are new or have changed. Reads only.

    ``lock``: lock the session until the end of the transaction.
    """
    session = Session.objects.filter(workspace_id=workspace.pk, key=record.key).first() if workspace.pk else None
    if session and lock:
        session = lock_session(session.pk)
    rows = _known_entries(session) if session else []
    known = {(row.source_id, row.source_hash): row for row in rows}
    entries = {_identity(entry): entry for entry in record.entries}
    latest = {entry.source_id: entry.source_hash for entry in record.entries if entry.source_id}
    is_rewound = {key: entry.is_rewound or latest.get(key[0], key[1]) != key[1] for key, entry in entries.items()}
    unknown = [key for key in entries if key not in known]
    elsewhere = set(_elsewhere(workspace, session, unknown)) if workspace.pk else set()
    elsewhere |= _deleted_before_fork(session, list(entries), elsewhere | known.keys())
    own = [key for key in entries if key not in elsewhere]
    deleted = repeated_records(workspace, own) if own and own[0] not in known and workspace.pk else set()
    elsewhere |= deleted
    new = [replace(entries[key], is_rewound=is_rewound[key]) for key in unknown if key not in elsewhere]
    plan = _place(session, record, rows)
    marks = {}
    for key, row in known.items():
        flag = is_rewound.get(key, row.is_rewound or row.source_id in latest)
        if flag != row.is_rewound:
            marks[row.pk] = flag
    repeated = takewhile(elsewhere.__contains__, entries)
    in_epoch = {row.source_id for row in rows if row.source_id and row.epoch == plan.epoch}
    lacks_entries = not in_epoch <= latest.keys()
    if lacks_entries and not new:
        plan = replace(plan, alignment=Alignment("shorter", 0))
    return IdPlan(
        plan,
        new,
        marks,
        known,
        lacks_entries=lacks_entries,
        deleted_count=len(deleted),
        forked_at=max(enumerate(repeated), default=(0, ("", "")))[1][0],
    )


def _identity(entry: EntryRecord) -> Identity:
    return entry.source_id, entry.source_hash


def _known_entries(session: Session) -> list[KnownEntry]:
    rows = Entry.objects.filter(session=session).order_by("epoch", "position")
    fields = ("pk", "epoch", "source_id", "source_hash", "is_rewound", "summary_id")
    return [KnownEntry(*row) for row in rows.values_list(*fields).iterator()]


def _elsewhere(workspace: Workspace, session: Session | None, wanted: Collection[Identity]) -> Iterator[Identity]:
    """Yield the records that other sessions of the workspace have."""
    ids = sorted({source_id for source_id, _ in wanted if source_id})
    others = Entry.objects.filter(workspace=workspace)
    if session:
        others = others.exclude(session=session)
    for start in range(0, len(ids), BATCH_ROWS):
        some = others.filter(source_id__in=ids[start : start + BATCH_ROWS]).exclude(source_id="")
        yield from some.values_list("source_id", "source_hash")


def _deleted_before_fork(
    session: Session | None, order: Sequence[Identity], present: Collection[Identity]
) -> set[Identity]:
    """Return the records that a fork repeats from its original, if that was deleted since."""
    last = session.extra.get(FORKED_AT) if session else None
    place = next((number for number, (source_id, _) in enumerate(order) if last and source_id == last), None)
    if place is None or order[place] in present:
        return set()
    return set(order[: place + 1]).difference(present)


def _place(session: Session | None, record: SessionRecord, rows: Collection[KnownEntry]) -> SessionPlan:
    """Return the epoch that a record continues: the one with its entries, or else the one that it names."""
    start = Alignment("grown", 0)
    if session is None:
        return SessionPlan(None, record.epoch or 0, start, 0, is_current=True, is_named=True)
    epoch = session.epoch
    if record.epoch is not None:
        ids = {entry.source_id for entry in record.entries if entry.source_id}
        shared = {row.epoch for row in rows if row.source_id in ids}
        used = {row.epoch for row in rows}
        epoch = max(shared) if shared else record.epoch if record.epoch not in used else max(used) + 1
    length = sum(row.epoch == epoch for row in rows)
    is_current, opens = epoch >= session.epoch, epoch > session.epoch
    return SessionPlan(session, epoch, start, length, is_current=is_current, opens_epoch=opens, is_named=True)


def count_by_id(plan: IdPlan, record: SessionRecord, path: str) -> ImportCounts:
    counts = ImportCounts()
    if plan.deleted_count:
        what = f"repeats {plan.deleted_count:,} messages of a session that was deleted from the hub"
        action = "left out; an operator can allow that session again on the Sessions page"
        counts.problems.append(Problem(path, None, what, action, "ignored"))
    counts.added["sessions"] += plan.session.session is None
    counts.added["entries"] += len(plan.new)
    counts.updated["entries"] += len(plan.marks)
    counts.unchanged["entries"] += len(record.entries) - len(plan.new)
    return counts


def apply_by_id(
    workspace: Workspace,
    record: SessionRecord,
    plan: IdPlan,
    counts: ImportCounts,
    now: datetime,
    values: Mapping[str, str],
) -> Session:
    """Apply a plan, inside a transaction. Raises IntegrityError if another import was faster."""
    place = plan.session
    if record.forked_from and plan.forked_at:
        record = replace(record, extra=record.extra | {FORKED_AT: plan.forked_at})
    since = place.session.missing_since if place.session else None
    own: dict[str, Any] = {**values, "missing_since": (since or now) if plan.lacks_entries else None}
    session, is_changed = save_session(workspace, record, place, now, own)
    summaries = add_summaries(session, record, place.epoch, counts, now)
    written = write_entries(
        session, plan.new, epoch=place.epoch, first_position=place.first_position, now=now, summaries=summaries
    )
    _mark_rewound(plan.marks)
    is_changed |= bool(_link_known_entries(record, plan, summaries))
    measure_summaries(summaries.values())
    session.entry_count += len(written)
    if place.is_current:
        session.next_position = place.first_position + len(written)
    session.save(update_fields=["entry_count", "next_position"])
    if place.session is not None:
        counts.updated["sessions"] += is_changed
        counts.unchanged["sessions"] += not is_changed
    return session


def _mark_rewound(marks: Mapping[int, bool]) -> None:
    for flag in (True, False):
        keys = [pk for pk, wanted in marks.items() if wanted is flag]
        for start in range(0, len(keys), BATCH_ROWS):
            Entry.objects.filter(pk__in=keys[start : start + BATCH_ROWS]).update(is_rewound=flag)


def _link_known_entries(record: SessionRecord, plan: IdPlan, summaries: Mapping[str, Summary]) -> int:
    """Link entries that the agent has summarised since the last import; return their number."""
    folded: defaultdict[str, list[int]] = defaultdict(list)
    for entry in record.entries:
        row = plan.known.get(_identity(entry))
        is_open = row is not None and row.summary_id is None and row.epoch == plan.session.epoch
        if row and is_open and entry.summary_source_id in summaries:
            folded[entry.summary_source_id].append(row.pk)
    return sum(
        Entry.objects.filter(pk__in=keys[start : start + BATCH_ROWS]).update(summary=summaries[name])
        for name, keys in folded.items()
        for start in range(0, len(keys), BATCH_ROWS)
    )
