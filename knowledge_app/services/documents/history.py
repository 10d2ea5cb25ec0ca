"""The history log, which is append-only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, Q

from knowledge_app.models import HeldRow, HistoryEntry
from knowledge_app.services.documents.history_matching import HistoryMatch, LogEntry, match_history
from knowledge_app.services.held_rows import hold_flagged, hold_imported
from memoryhub.lib.database import db_retry
from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import HistoryLog, HistoryRecord, Problem, text_hash
from memoryhub.lib.validation import clean_text
from sessions_app.models import DeletedSession, Run, Session, SourceFolder, Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.lifecycle import forgotten_key
from sessions_app.services.workspaces import lock_workspace


def import_history(
    *,
    workspace: Workspace,
    log: HistoryLog,
    path: str,
    now: datetime,
    dry_run: bool,
    folder: SourceFolder | None = None,
) -> ImportCounts:
    """Store the entries of a log that aren't stored yet. Importing a log twice adds and changes nothing.

    Entries are matched by ``match_history``, so that a rotation, a trimmed journal, an edit in the middle or the
    upgrade from HISTORY.md to a journal neither loses nor duplicates entries. An edited entry becomes a new version.
    New entries and versions that the content check flags are held, and the earlier version stays in use meanwhile.
    ``folder``: which the file is in; None for the workspace's own.
    """
    stored = _stored(workspace, folder)
    match = match_history(
        [entry.identity for entry in stored],
        [LogEntry(text_hash(entry.content), entry.occurred_at) for entry in log.entries],
        stored_texts=lambda indexes: _texts(stored, indexes),
        file_text=lambda place: log.entries[place].content,
    )
    counts = ImportCounts()
    counts.added["history"] += len(match.new)
    counts.updated["history"] += len(match.edited)
    counts.unchanged["history"] += len(match.same)
    if problem := _problem(path, log, stored, match):
        counts.problems.append(problem)
    with transaction.atomic():
        if dry_run:
            added = [HistoryEntry(content=log.entries[place].content) for place in (*match.new, *match.edited)]
        else:
            moved = [
                stored[i].pk for p, i in match.same.items() if log.entries[p].is_archived > stored[i].is_archived
            ]
            _update_in_batches(workspace, moved, is_archived=True)
            edited = {place: stored[index] for place, index in match.edited.items()}
            versions = _append_versions(workspace, log.entries, edited, now)
            added = [*versions, *append_history(workspace, [log.entries[place] for place in match.new], now=now)]
        counts.problems += hold_imported(workspace, added, {}, path=path, now=now, dry_run=dry_run)
        if match.edited and not dry_run:
            _withdraw_earlier(workspace, versions, now)
    return counts


def _problem(path: str, log: HistoryLog, stored: Sequence[_Stored], match: HistoryMatch) -> Problem | None:
    found = {*match.same.values(), *match.edited.values()}
    from_files = [index for index, entry in enumerate(stored) if entry.identity.is_from_file]
    missing = [index for index in from_files if index not in found and index > min(found, default=-1)]
    if match.edited:
        what = f"{len(match.edited)} of its entries were edited"
        return Problem(
            path, None, what, "stored as new versions, which replace the earlier ones unless they are held", "noted"
        )
    if not missing:
        return None
    if match.new:
        what = f"it doesn't continue the {len(from_files)} entries that the hub keeps"
        action = f"{len(match.new)} entries appended; nothing is removed from the hub"
        return Problem(path, None, what, action, "noted")
    what = f"it has {len(log.entries)} of the {len(from_files)} entries that the hub keeps"
    return Problem(path, None, what, "nothing is removed from the hub", "held")


def append_history(
    workspace: Workspace,
    records: Sequence[HistoryRecord],
    *,
    now: datetime,
    run: Run | None = None,
    version_of: int | None = None,
) -> list[HistoryEntry]:
    """Append records to the log and return their rows. Raises IntegrityError if another writer appended first."""
    if not records:
        return []
    last = HistoryEntry.objects.filter(workspace=workspace).aggregate(last=Max("position"))["last"]
    first = 0 if last is None else last + 1
    keys = {entry.session_key for entry in records if entry.session_key}
    sessions = dict(Session.objects.filter(workspace=workspace, key__in=keys).values_list("key", "pk"))
    unknown = _never_deleted(workspace, keys - sessions.keys())
    return HistoryEntry.objects.bulk_create(
        [
            HistoryEntry(
                workspace=workspace,
                session_id=sessions.get(entry.session_key),
                run=run,
                position=position,
                version_of=version_of,
                content=entry.content,
                occurred_at=entry.occurred_at,
                occurred_at_text=entry.occurred_at_text,
                source=entry.file,
                source_hash=text_hash(entry.content),
                is_archived=entry.is_archived,
                extra=entry.extra | ({"session_key": entry.session_key} if entry.session_key in unknown else {}),
                recorded_at=now,
            )
            for position, entry in enumerate(records, first)
        ],
        batch_size=500,
    )


def _never_deleted(workspace: Workspace, keys: Collection[str]) -> Collection[str]:
    """Return the keys of sessions that the hub doesn't have, without those that were deleted from it."""
    tombstones = DeletedSession.objects.filter(workspace=workspace)
    deleted = set(tombstones.values_list("key", flat=True)) if keys else set()
    return [key for key in keys if not deleted & {key, forgotten_key(workspace, key)}]


@db_retry.retried
@transaction.atomic
def add_note(workspace: Workspace, text: str, *, by: By, session_key: str = "") -> HistoryEntry:
    """Append a note of a person or an agent and return its entry."""
    lock_workspace(workspace.pk)  # serialize concurrent notes
    noted = HistoryRecord(content=clean_text(text), source_hash="", occurred_at=by.at, session_key=session_key)
    append_history(workspace, [noted], now=by.at)
    entry = HistoryEntry.objects.select_related("session").filter(workspace=workspace).latest("position")
    words = "A note was added to the history"
    record(by, "history.noted", "workspace", workspace.pk, words, workspace=workspace)
    hold_flagged([entry], by)
    return entry


@dataclass(frozen=True)
class _Stored:
    """The latest version of a stored entry. ``place``: position of its first version.

    ``in_use``: the versions that aren't withdrawn; two if one of them is held.
    """

    pk: int
    place: int
    in_use: tuple[int, ...]
    is_archived: bool
    identity: LogEntry


def _stored(workspace: Workspace, folder: SourceFolder | None) -> list[_Stored]:
    """Return the latest version of each entry from a folder, in order; the workspace's own has the hub's, too."""
    if workspace.pk is None:
        return []
    rows = HistoryEntry.objects.filter(workspace=workspace).order_by("position")
    rows = rows.filter(source__startswith=f"{folder.path}/") if folder else rows.exclude(source__startswith="/")
    names = ("pk", "position", "version_of", "withdrawn_at", "is_archived", "source_hash", "occurred_at", "source")
    latest: dict[int, _Stored] = {}
    for pk, position, first, withdrawn_at, is_archived, text, occurred_at, source in rows.values_list(*names):
        place = position if first is None else first
        in_use = latest[place].in_use if place in latest else ()
        in_use += (pk,) if withdrawn_at is None else ()
        latest[place] = _Stored(pk, place, in_use, is_archived, LogEntry(text, occurred_at, bool(source)))
    return list(latest.values())


def _texts(stored: Sequence[_Stored], indexes: Collection[int]) -> dict[int, str]:
    by_pk = {stored[index].pk: index for index in indexes}
    return {by_pk[pk]: text for pk, text in HistoryEntry.objects.filter(pk__in=by_pk).values_list("pk", "content")}


def _append_versions(
    workspace: Workspace, entries: Sequence[HistoryRecord], edited: Mapping[int, _Stored], now: datetime
) -> dict[HistoryEntry, _Stored]:
    """Append new versions of entries, and return them with the earlier ones.

    They keep the run and session, and stay archived or withdrawn if the earlier one was.
    """
    earlier = HistoryEntry.objects.in_bulk([entry.pk for entry in edited.values()])
    versions = {}
    for place, entry in edited.items():
        old = earlier[entry.pk]
        (new,) = append_history(workspace, [entries[place]], now=now, run=old.run, version_of=entry.place)
        HistoryEntry.objects.filter(pk=new.pk).update(
            session=new.session_id or old.session_id,
            is_archived=new.is_archived or old.is_archived,
            withdrawn_at=None if entry.in_use else now,
        )
        versions[new] = entry
    return versions


def _withdraw_earlier(workspace: Workspace, versions: Mapping[HistoryEntry, _Stored], now: datetime) -> None:
    """Withdraw what new versions replace; a held one replaces only versions that were held themselves."""
    held = set(HeldRow.objects.filter(workspace=workspace).values_list("history_entry", flat=True))
    replaced = [pk for new, entry in versions.items() for pk in entry.in_use if new.pk not in held or pk in held]
    _update_in_batches(workspace, replaced, withdrawn_at=now)


def withdraw_other_versions(entry: HistoryEntry, now: datetime) -> list[int]:
    """Withdraw what an approved version replaces, and return the primary keys."""
    if entry.version_of is None:
        return []
    places = Q(position=entry.version_of) | Q(version_of=entry.version_of)
    others = HistoryEntry.objects.filter(places, workspace=entry.workspace_id, withdrawn_at=None).exclude(pk=entry.pk)
    replaced = list(others.values_list("pk", flat=True))
    others.update(withdrawn_at=now)
    return replaced


def _update_in_batches(workspace: Workspace, pks: Sequence[int], **values: Any) -> None:
    for start in range(0, len(pks), 500):
        HistoryEntry.objects.filter(workspace=workspace, pk__in=pks[start : start + 500]).update(**values)
