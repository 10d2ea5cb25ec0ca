"""Sync a workspace with its agent's folder: import what is new there, then write what is new in the hub.

Idempotent, and cheap if nothing changed: unchanged files aren't read. Nothing is deleted from the hub because a
folder lacks it, and session files are never written.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from knowledge_app.models import MemoryDocument
from knowledge_app.services.documents.outside_edits import hold_emptied
from knowledge_app.services.documents.revisions import StaleBase
from knowledge_app.services.held_rows import AGENTS_FILE
from knowledge_app.services.rows.knowledge_json import knowledge_mark
from knowledge_app.services.rows.proposed_edits import has_room
from memoryhub.hygiene.imported import find_secrets
from memoryhub.lib.errors import MemoryHubError, Refused, unexpected
from memoryhub.lib.files.safe_folder import Folder, FolderMissing, display_path
from memoryhub.lib.import_counts import ImportCounts, import_sentence
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.hub import MANIFEST, PATHS
from memoryhub.lib.layouts.projects import in_project
from memoryhub.lib.layouts.read import count_files, read_folder
from memoryhub.lib.layouts.records import DetectedLayout, DocumentRecord, FileRead, Problem
from memoryhub.lib.text.forgotten import MARK
from memoryhub.origins.inference import infer_origins
from memoryhub.sync.fork_order import originals_first
from memoryhub.sync.importing import LOCK_SECONDS, import_lock, import_source_file, own_path
from memoryhub.sync.instructions import read_instructions
from memoryhub.sync.source_workspace import workspace_for
from memoryhub.sync.write_back import FileWritten, import_copies, write_files
from sessions_app.models import SourceFile, SourceFolder, Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.session_links import link_sessions
from sessions_app.services.sources import LEFT, is_recorded, mark_files_missing
from sessions_app.services.syncing import Outcome, record_failure, record_success

logger = logging.getLogger(__name__)
EMPTY = hashlib.sha256(b"").hexdigest()
GONE = Problem("", None, "is gone", "everything imported from it is kept", "held")


@dataclass
class SyncResult:
    """The result of a sync: ``tally`` of the import, and the files ``written``.

    ``source``: the folder, if it isn't the workspace's own. ``copies_left``: copies of replaced files that need
    another sync because they aren't quiet yet.
    """

    workspace: Workspace
    found: DetectedLayout
    source: SourceFolder | None = None
    tally: ImportCounts = field(default_factory=ImportCounts)
    written: list[FileWritten] = field(default_factory=list)
    may_write: bool = False
    lag_seconds: float | None = None
    copies_left: int = 0

    @property
    def has_changed(self) -> bool:
        return bool(+self.tally.added or +self.tally.updated or any(one.verdict == "written" for one in self.written))


def sync_workspace(
    workspace: Workspace, *, by: By, full: bool = False, wait: bool = True, send: bool = False
) -> SyncResult:
    """Import what is new in a workspace's folder, then write the hub's newer texts if that is switched on.

    ``send`` writes them once, even if it isn't. ``full`` reads every file, even one that looks unchanged. Without
    ``wait``, copies of replaced files that aren't quiet yet are left to the next sync. The result is stored in the
    workspace's SyncState. Raises Refused, FolderMissing (and marks the workspace as unavailable), Invalid,
    ImportRefused while the folder is being imported, and the errors of ``expected_errors``.
    """
    path = Path(workspace.path)
    if not workspace.path or path.is_file():
        raise Refused("Only a folder can be synced, not a file or an archive.", code="cannot_sync")
    try:
        timeout = LOCK_SECONDS if wait else 0
        with import_lock(own_path(path), workspace.project, timeout=timeout), expected_errors(path):
            result = _sync(workspace, path, by, full=full, wait=wait, send=send)
    except MemoryHubError as error:
        record_failure(workspace, error, started_at=by.at, now=timezone.now(), always=full)
        raise
    record_success(workspace, _outcome(result), started_at=by.at, now=max(by.at, timezone.now()), always=full)
    return result


@contextmanager
def expected_errors(path: Path) -> Iterator[None]:
    """Log an unexpected error, and raise one that can be stored and shown. A database that is away isn't one."""
    try:
        yield
    except (MemoryHubError, OperationalError, InterfaceError):
        raise
    except Exception as error:
        logger.exception("sync of %s failed", path)
        raise unexpected(error) from error


def _sync(workspace: Workspace, path: Path, by: By, *, full: bool, wait: bool, send: bool) -> SyncResult:
    try:
        with Folder(path, quiet_seconds=settings.MEMORYHUB_QUIET_SECONDS) as folder:
            known = _known_files(workspace, None)
            found = detect(folder, "auto" if is_export(folder, known) else workspace.layout)
            found = in_project(folder, found, workspace.project) if workspace.project else found
            refuse_emptied(folder, found, known)
            workspace = workspace_for(path, "", found, by.at, dry_run=False)
            result = SyncResult(workspace, found)
            import_copies(folder, found, workspace, by.at, wait=wait)
            files = read_folder(folder, found, zone=ZoneInfo(settings.TIME_ZONE))
            import_files(folder, result, files, by, full=full)
            find_secrets(workspace, count=result.tally.added["entries"], now=by.at)
            result.may_write = workspace.write_back or send
            if result.may_write:
                result.written = write_files(folder, found, workspace, by=by)
            result.copies_left = import_copies(folder, found, workspace, by.at, wait=wait)
            if +result.tally.added or +result.tally.updated:
                infer_origins(workspace, now=by.at)
    except FolderMissing:
        Workspace.objects.filter(pk=workspace.pk, unavailable_since=None).update(unavailable_since=by.at)
        raise
    return result


def _known_files(workspace: Workspace, source: SourceFolder | None) -> QuerySet[SourceFile]:
    return SourceFile.objects.filter(workspace=workspace, folder=source)


def is_export(folder: Folder, known: QuerySet[SourceFile]) -> bool:
    """Tell whether a followed folder is an export of a hub, whatever program the memory is from.

    ``known``: its files. A manifest that an agent writes into its own folder, with other files, changes nothing.
    """
    read = known.filter(content_hash__gt="").exclude(path__contains=MARK).values_list("path", flat=True)
    return folder.exists(MANIFEST) and all(PATHS.fullmatch(relative_path(folder, path)) for path in read)


def refuse_emptied(folder: Folder, found: DetectedLayout, known: QuerySet[SourceFile]) -> None:
    """Refuse a folder that lost all its files: its disk isn't mounted, or it was replaced. Raises FolderMissing."""
    paths = known.filter(content_hash__gt="").values_list("path", flat=True)
    has_none = bool(paths) and not any(folder.exists(relative_path(folder, path)) for path in paths)
    if has_none and not count_files(folder, found):
        raise FolderMissing(
            f"{folder.path} has none of its earlier files. Is its disk mounted? The hub keeps everything."
        )


def relative_path(folder: Folder, path: str) -> str:
    """Return the path of a file below a folder, given that or its absolute path."""
    return path.removeprefix(f"{display_path(str(folder.path))}/")


def import_files(folder: Folder, result: SyncResult, files: Iterator[FileRead], by: By, *, full: bool) -> None:
    """Import the changed files of a folder, and the instructions of its project; mark those that are gone.

    ``files``: read as this iterates over them, with the paths by which the hub knows them.
    """
    workspace, source = result.workspace, result.source
    rows = {row.path: row for row in _known_files(workspace, source)}
    stamps = {} if full else {path: row.stamp for path, row in rows.items() if _may_skip(row)}
    folder.skip_unchanged({relative_path(folder, path): stamp for path, stamp in stamps.items()})
    reads = chain(originals_first(workspace, files), read_instructions(source or workspace, stamps))
    others = SourceFile.objects.filter(workspace=workspace).exclude(folder=source)
    seen: set[str] = set()
    for read in reads:
        seen.add(read.path)
        row = rows.get(read.path)
        if row is None and read.path.startswith("/") and others.filter(path=read.path).exists():
            continue  # another folder of the workspace has the same file
        if read.is_skipped or (read.info is None and is_recorded(row, read)):
            result.tally.unchanged["files"] += 1
            continue
        if _stays_empty(row, read, by.at):
            _hold_emptied(workspace, read, result.tally, by.at)
            continue
        _import_file(result, read, by.at)
    folder.skip_unchanged({})
    _mark_missing(workspace, [row for path, row in rows.items() if path not in seen], result.tally, by.at)
    _record_imported(result, by)


def _may_skip(row: SourceFile) -> bool:
    """Tell whether a file that looks unchanged can be skipped.

    An emptied document can't, nor can changes that are left to be proposed, and only reading a file shows whether it
    is a list of observations.
    """
    if row.extra.get(LEFT) and has_room(row.workspace_id, AGENTS_FILE):
        return False
    return row.kind != "observations" and not (row.kind == "document" and row.content_hash == EMPTY)


def _import_file(result: SyncResult, read: FileRead, now: datetime) -> None:
    try:
        tally = import_source_file(result.workspace, read, now, dry_run=False, folder=result.source)
    except StaleBase:  # somebody saved the document at this moment: try again with their text
        tally = import_source_file(result.workspace, read, now, dry_run=False, folder=result.source)
    result.tally.include(tally)
    if read.info and (+tally.added or +tally.updated):
        lag = max(0.0, timezone.now().timestamp() - read.info.mtime_ns / 1e9)
        result.lag_seconds = max(lag, result.lag_seconds or 0.0)


def _stays_empty(row: SourceFile | None, read: FileRead, now: datetime) -> bool:
    """Tell whether a document's file is empty for the second sync, and for longer than a writer needs."""
    if row is None or read.info is None or read.kind != "document" or read.info.sha256 != EMPTY:
        return False
    quiet = timedelta(seconds=settings.MEMORYHUB_QUIET_SECONDS)
    return row.stamp == read.info.stamp and now - row.last_seen_at >= quiet


def _hold_emptied(workspace: Workspace, read: FileRead, tally: ImportCounts, now: datetime) -> None:
    tally.unchanged["documents"] += 1
    names = [item.name for item in read.items if isinstance(item, DocumentRecord)]
    document = MemoryDocument.objects.filter(workspace=workspace, name__in=names).first()
    if document is not None:
        hold_emptied(document, now)


def _mark_missing(workspace: Workspace, missing: Sequence[SourceFile], tally: ImportCounts, now: datetime) -> None:
    new = [row.pk for row in missing if row.status != SourceFile.Status.MISSING]
    if new:
        gone = SourceFile.objects.filter(workspace=workspace, pk__in=new)
        tally.problems += mark_files_missing(gone, GONE, now)
        gone.update(stamp="")


def _record_imported(result: SyncResult, by: By) -> None:
    tally, workspace = result.tally, result.workspace
    if not (+tally.added or +tally.updated):
        return
    with transaction.atomic():
        link_sessions(workspace)
        Workspace.objects.filter(pk=workspace.pk).update(updated_at=by.at)
        record(
            by,
            "workspace.synced",
            "workspace",
            workspace.pk,
            import_sentence(tally),
            workspace=workspace,
            detail={"added": dict(+tally.added), "updated": dict(+tally.updated), "problems": len(tally.problems)},
        )


def _outcome(result: SyncResult) -> Outcome:
    written = [one for one in result.written if one.verdict == "written"]
    counts = {
        "added": dict(+result.tally.added),
        "updated": dict(+result.tally.updated),
        "written": {"files": len(written)} if written else {},
    }
    unwritten = {one.path: one.why for one in result.written if one.verdict == "refused"}
    is_compared = result.found.layout == "grip" and result.may_write
    mark = knowledge_mark(result.workspace) if is_compared else ""
    return Outcome(counts, result.lag_seconds, unwritten, mark)
