"""Source files as last seen, and problems of an import."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime

from django.db.models import QuerySet

from memoryhub.lib.database.prepared import PreparedRows
from memoryhub.lib.layouts.records import FileRead, HistoryLog, Problem
from sessions_app.models import ImportProblem, ImportReport, Session, SourceFile, SourceFolder, Workspace

SESSIONS = "sessions"  # in SourceFile.extra: the keys of the sessions of a file whose records have ids
LEFT = "left"  # in SourceFile.extra: how many changes weren't proposed because too many were waiting
HISTORY_EXTRA = "history_extra"  # in SourceFile.extra: what a history file has beside its entries
Status = SourceFile.Status
_SOURCE = PreparedRows(2, lambda workspace, path: SourceFile.objects.filter(workspace=workspace, path_hash=path))


def path_hash(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()


def folder_hash(path: str, project: str = "") -> str:
    """Return a hash that identifies a folder, or a project in it."""
    return path_hash(f"{path}\0{project}" if project else path)


def find_source(workspace: Workspace, path: str) -> SourceFile | None:
    return None if workspace.pk is None else _SOURCE.first(workspace.pk, path_hash(path))


def is_recorded(row: SourceFile | None, read: FileRead) -> bool:
    """Tell whether the state of a file that isn't or can't be read is already recorded."""
    if row is None or row.status == Status.MISSING:
        return False
    rejected = any(problem.outcome == "rejected" for problem in read.problems)
    return row.note == read.note and (row.status == Status.REJECTED) == rejected


def record_source(
    workspace: Workspace,
    read: FileRead,
    source: SourceFile | None,
    problems: Collection[Problem],
    now: datetime,
    *,
    folder: SourceFolder | None = None,
    left: int | None = None,
) -> SourceFile:
    """Record a file as this import saw it. An unreadable file keeps its earlier values.

    ``folder``: of a new file; None for the workspace's own. ``left``: see LEFT; None keeps it.
    """
    row = source or find_source(workspace, read.path) or SourceFile(workspace=workspace, path=read.path)
    row.path_hash = path_hash(read.path)
    row.kind = read.kind
    row.note = read.note
    row.status = _status(read, problems)
    row.last_seen_at = now
    if row.pk is None:
        row.first_seen_at, row.folder = now, folder
    if read.info:
        row.size, row.mtime_ns, row.content_hash = read.info.size, read.info.mtime_ns, read.info.sha256
        row.stamp = "" if read.always_reread else read.info.stamp
        if left is not None and left != row.extra.get(LEFT, 0):
            row.extra = row.extra | {LEFT: left}
        for item in read.items:
            if isinstance(item, HistoryLog) and item.extra != row.extra.get(HISTORY_EXTRA, {}):
                row.extra = row.extra | {HISTORY_EXTRA: item.extra}
    row.save()
    return row


def _status(read: FileRead, problems: Collection[Problem]) -> Status:
    outcomes = {problem.outcome for problem in problems}
    if read.is_empty or "held" in outcomes:
        return Status.HELD
    if not (read.items or read.is_store) and "rejected" in outcomes:
        return Status.REJECTED
    harmless = {"noted", "ignored"} if read.items else {"noted"}
    return Status.PROBLEMS if outcomes - harmless else Status.READ


def record_sessions(source: SourceFile, sessions: Collection[int], now: datetime) -> None:
    """Record which sessions a file contains, where records have ids; sessions that it lost are marked as missing.

    The caller saves the row.
    """
    gone = set(source.extra.get(SESSIONS, [])) - set(sessions)
    Session.objects.filter(pk__in=gone, missing_since=None).update(missing_since=now)
    source.extra = source.extra | {SESSIONS: sorted(sessions)}
    if len(sessions) > 1:
        source.session, source.epoch = None, 0


def mark_missing(workspace: Workspace, now: datetime) -> list[Problem]:
    """Mark files of the workspace's own folder that the import at ``now`` didn't find as missing."""
    missing = SourceFile.objects.filter(workspace=workspace, folder=None, last_seen_at__lt=now)
    gone = Problem("", None, "was here at an earlier import and is gone", "all that came from it is kept", "held")
    return mark_files_missing(missing, gone, now)


def mark_files_missing(missing: QuerySet[SourceFile], gone: Problem, now: datetime) -> list[Problem]:
    """Mark files, and the sessions that no other file contains, as missing; return the problems to report.

    Files of records with ids are reported once and together, since their programs delete old sessions on their own.
    Sessions in a store that can't be read (``store#session``) aren't missing.
    """
    rows = list(missing.order_by("path"))
    stores = {store for row in rows if (store := _store_of(row))}
    unread = SourceFile.objects.filter(workspace__in={row.workspace_id for row in rows}, status=Status.REJECTED)
    unreadable = set(unread.filter(path__in=stores).values_list("path", flat=True))
    rows = [row for row in rows if _store_of(row) not in unreadable]
    problems, deleted = [], 0
    for row in rows:
        if SESSIONS not in row.extra:
            problems.append(replace(gone, file=row.path))
        elif row.status != Status.MISSING:
            deleted += 1
            sessions = Session.objects.filter(pk__in=row.extra[SESSIONS], missing_since=None)
            sessions.update(missing_since=now)
    if deleted:
        what = f"{deleted:,} {'session file was' if deleted == 1 else 'session files were'} deleted by the program"
        problems.append(Problem("", None, what, "the sessions are kept", "noted"))
    SourceFile.objects.filter(pk__in=[row.pk for row in rows]).update(status=Status.MISSING)
    return problems


def _store_of(row: SourceFile) -> str:
    store, mark, _session = row.path.rpartition("#")
    return store if mark else ""


def store_problems(report: ImportReport, problems: Iterable[Problem]) -> int:
    """Store the problems of a report; return their number."""
    rows = [
        ImportProblem(
            report=report,
            file=problem.file,
            line=problem.line,
            what=problem.what,
            action=problem.action,
            outcome=problem.outcome,
            raw=problem.raw,
        )
        for problem in problems
    ]
    ImportProblem.objects.bulk_create(rows, batch_size=500)
    return len(rows)
