"""Source files as last seen, and problems of an import."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from datetime import datetime

from memoryhub.lib.layouts.records import FileRead, HistoryLog, Problem
from sessions_app.models import ImportProblem, ImportReport, SourceFile, Workspace

HISTORY_EXTRA = "history_extra"  # in SourceFile.extra: what a history file has beside its entries
Status = SourceFile.Status


def path_hash(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()


def find_source(workspace: Workspace, path: str) -> SourceFile | None:
    if workspace.pk is None:
        return None
    return SourceFile.objects.filter(workspace=workspace, path_hash=path_hash(path)).first()


def record_source(
    workspace: Workspace, read: FileRead, source: SourceFile | None, problems: Collection[Problem], now: datetime
) -> SourceFile:
    """Record a file as this import saw it. An unreadable file keeps its earlier values."""
    row = source or find_source(workspace, read.path) or SourceFile(workspace=workspace, path=read.path)
    row.path_hash = path_hash(read.path)
    row.kind = read.kind
    row.note = read.note
    row.status = _status(read, problems)
    row.last_seen_at = now
    if row.pk is None:
        row.first_seen_at = now
    if read.info:
        row.size, row.mtime_ns, row.content_hash = read.info.size, read.info.mtime_ns, read.info.sha256
        row.stamp = "" if read.always_reread else read.info.stamp
        for item in read.items:
            if isinstance(item, HistoryLog) and item.extra != row.extra.get(HISTORY_EXTRA, {}):
                row.extra = row.extra | {HISTORY_EXTRA: item.extra}
    row.save()
    return row


def _status(read: FileRead, problems: Collection[Problem]) -> Status:
    outcomes = {problem.outcome for problem in problems}
    if read.is_empty or "held" in outcomes:
        return Status.HELD
    if not read.items and "rejected" in outcomes:
        return Status.REJECTED
    return Status.PROBLEMS if outcomes - {"noted"} else Status.READ


def mark_missing(workspace: Workspace, now: datetime) -> list[Problem]:
    """Mark files that the import at ``now`` didn't find as missing. Their rows are kept."""
    missing = SourceFile.objects.filter(workspace=workspace, last_seen_at__lt=now)
    problems = [
        Problem(row.path, None, "was here at an earlier import and is gone", "all that came from it is kept", "held")
        for row in missing.order_by("path")
    ]
    missing.update(status=Status.MISSING)
    return problems


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
