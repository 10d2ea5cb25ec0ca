"""Import an agent's folder: from files to rows, one source file at a time. Idempotent."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction

from knowledge_app.models import HistoryEntry, MemoryDocument
from knowledge_app.services.documents.history import import_history
from knowledge_app.services.documents.outside_edits import SYNC, import_document
from knowledge_app.services.documents.pending_writes import write_without_forgotten
from knowledge_app.services.rows.importing import (
    import_cached_responses,
    import_key_values,
    import_knowledge,
    import_observations,
)
from memoryhub.forgetting.import_filter import import_rules, shown_path, without_forgotten
from memoryhub.graph.neighbours import import_graph
from memoryhub.hygiene.imported import find_secrets
from memoryhub.jobs.uploads import is_upload, readable_path
from memoryhub.lib.content_check.precheck import prechecked
from memoryhub.lib.errors import Invalid, MemoryHubError, Refused
from memoryhub.lib.files.safe_folder import Folder, FolderMissing
from memoryhub.lib.import_counts import ImportCounts, import_sentence
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.documents import EMPTY
from memoryhub.lib.layouts.read import count_files, read_folder
from memoryhub.lib.layouts.records import (
    CachedResponseRecord,
    DetectedLayout,
    DocumentRecord,
    FileRead,
    GraphRecord,
    HistoryLog,
    KeyValueRecord,
    KnowledgeRecord,
    ObservationRecord,
    Project,
    SessionRecord,
)
from memoryhub.lib.process_locks import process_lock
from memoryhub.origins.inference import infer_origins
from memoryhub.sync.archives import extract_archive
from memoryhub.sync.fork_order import originals_first
from memoryhub.sync.instructions import read_instructions
from memoryhub.sync.projects import choose_project
from memoryhub.sync.source_workspace import known_layout, workspace_for
from memoryhub.sync.texts_to_check import new_texts
from sessions_app.models import SourceFile, SourceFolder, Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.compressing.model_choice import embedding_settings_for
from sessions_app.services.importing import import_conversation
from sessions_app.services.session_links import link_sessions
from sessions_app.services.sources import LEFT, find_source, folder_hash, mark_missing, record_sessions, record_source
from sessions_app.services.workspaces import lock_workspace

Progress = Callable[[int, int, str], None]  # files done, number of files, current file
ARCHIVE_SUFFIXES = (".zip", ".tar.gz", ".tgz")
LOCK_SECONDS = 20.0  # that an import or a sync of a folder waits for another
MAX_EXPLAINED = 5_000  # facts whose origins an import infers
PARTS_OF_AGENTS = ("sessions", "memory", "state", "workspace", "projects", "agents", "tmp")


class ImportRefused(Refused):
    """The folder can't be imported, or not now; the message says why and what to do."""

    code = "import_refused"


class ImportCancelled(MemoryHubError):
    """The import was cancelled. Everything imported so far stays."""

    code = "import_cancelled"


@dataclass
class ImportResult:
    """The result of an import. ``workspace`` has no primary key after a dry run of a new folder.

    ``cancellation``: a message about how far it came, if it was cancelled.
    """

    workspace: Workspace
    found: DetectedLayout
    tally: ImportCounts = field(default_factory=ImportCounts)
    cancellation: str = ""


def import_workspace(
    path: Path,
    *,
    by: By,
    name: str = "",
    layout: str = "auto",
    project: str = "",
    dry_run: bool = False,
    progress: Progress = lambda _done, _all, _file: None,
    may_read: Callable[[Path], bool] | None = None,
) -> ImportResult:
    """Import an agent's folder, an AgTerm export or an archive of either into its workspace.

    The workspace is the one that was imported from the same path and project before, or else a new one. ``project``:
    its name, if the folder is a home with several. Each source file is one transaction. Nothing is deleted from the
    hub because a file lacks it; a second import changes nothing. ``progress`` is called after each file and at the
    end; if it raises ImportCancelled, the import ends there, and no file counts as missing. ``may_read``: whether the
    instructions in a project's own folder may be read; by default, below the roots of pages. Raises FolderMissing
    (and marks a known workspace as unavailable), Invalid, NotFound, BadArchive, ImportRefused.
    """
    path = own_path(path)
    with opened_source(path, by.at) as (folder, only):
        try:
            found = detect(folder, layout, only=only)
        except Invalid as error:
            if error.code != "unknown_layout" or layout != "auto":
                raise
            found = detect(folder, known_layout(folder, path), only=only)
        found, chosen = (found, None) if only else choose_project(folder, found, project)
        instructions = instructions_folder(path, chosen, may_read or is_below_roots)
        with import_lock(path, found.project):
            workspace = workspace_for(
                path,
                name or (chosen.label if chosen else ""),
                found,
                by.at,
                dry_run=dry_run,
                instructions=instructions,
            )
            result = ImportResult(workspace, found)
            files = read_folder(folder, found, zone=ZoneInfo(settings.TIME_ZONE), only=only)
            reads = chain(originals_first(workspace, files), read_instructions(workspace, {}))
            file_count = count_files(folder, found, only=only) or (chosen.session_count if chosen else 0)
            _import_files(result, reads, file_count, by, dry_run=dry_run, progress=progress)
            if not dry_run:
                _finish(result, by)
                find_secrets(workspace, count=result.tally.added["entries"], now=by.at)
                infer_origins(workspace, now=by.at, limit=MAX_EXPLAINED)
    return result


def _import_files(
    result: ImportResult, reads: Iterator[FileRead], file_count: int, by: By, *, dry_run: bool, progress: Progress
) -> None:
    done = 0
    try:
        for read in reads:
            done += not read.is_foreign
            result.tally.include(import_source_file(result.workspace, read, by.at, dry_run=dry_run))
            progress(done, max(file_count, done), read.path)
        if done < file_count:  # some files held no memory
            progress(done, done, "")
    except ImportCancelled as error:
        result.cancellation = error.message


def instructions_folder(source: Path, project: Project | None, may_read: Callable[[Path], bool]) -> Path | None:
    """Return the folder that a project's sessions worked in, if it exists on this machine and may be read."""
    if project is None or not project.path or source.is_file() or is_upload(source) or is_hub_home(source):
        return None
    path = Path(project.path)
    if not path.is_absolute() or not path.is_dir():
        return None
    path = path.resolve()
    is_root = path == path.parent  # where agents in containers may work
    return None if is_root or is_hub_home(path) or not may_read(path) else path


def is_below_roots(path: Path) -> bool:
    """Tell whether pages may import this path: it is below a configured root after resolving links."""
    resolved = path.expanduser().resolve()
    roots = [root.resolve() for root in settings.MEMORYHUB_ROOTS]
    return any(resolved.is_relative_to(root) for root in roots) and not is_hub_home(resolved)


def own_path(path: Path) -> Path:
    resolved = path.expanduser().resolve()
    if is_hub_home(resolved):
        raise ImportRefused("This is MemoryHub's own data folder, not an agent's folder.")
    return resolved


def is_hub_home(resolved: Path) -> bool:
    folders = [Path(folder).resolve() for folder in (settings.MEMORYHUB_HOME, settings.MEMORYHUB_FILES) if folder]
    return any(resolved.is_relative_to(one) and not resolved.is_relative_to(one / "agents") for one in folders)


@contextmanager
def import_lock(path: Path, project: str = "", *, timeout: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the lock of a folder, or of a project in it; wait ``timeout`` seconds for it. Raises ImportRefused."""
    with process_lock(f"import-{folder_hash(str(path), project)[:16]}", timeout=timeout) as is_acquired:
        if not is_acquired:
            raise ImportRefused("This folder is already being imported. Wait until that import is finished.")
        yield


@contextmanager
def opened_source(path: Path, now: datetime) -> Iterator[tuple[Folder, str]]:
    """Open a folder, a file's folder with the file's name, or an archive extracted to a private folder."""
    with readable_path(path) as readable, _opened(readable, path, now) as opened:
        yield opened


@contextmanager
def _opened(path: Path, source: Path, now: datetime) -> Iterator[tuple[Folder, str]]:
    quiet = settings.MEMORYHUB_QUIET_SECONDS
    if path.is_file() and path.name.lower().endswith(ARCHIVE_SUFFIXES):
        unpacked = Path(tempfile.mkdtemp(prefix="memoryhub-archive-"))
        try:
            extract_archive(path, unpacked / "contents")
            with Folder(_only_folder(unpacked / "contents"), quiet_seconds=0) as folder:
                yield folder, ""
        finally:
            shutil.rmtree(unpacked, ignore_errors=True)
    elif path.is_file():
        with Folder(path.parent, quiet_seconds=quiet) as folder:
            yield folder, path.name
    else:
        try:
            folder = Folder(path, quiet_seconds=quiet)
        except FolderMissing:
            Workspace.objects.filter(path=str(source), unavailable_since=None).update(unavailable_since=now)
            raise
        with folder:
            yield folder, ""


def _only_folder(unpacked: Path) -> Path:
    """Return the single folder that most archives consist of, unless it is itself a part of an agent's folder."""
    children = list(unpacked.iterdir())
    is_wrapper = len(children) == 1 and children[0].is_dir() and children[0].name not in PARTS_OF_AGENTS
    return children[0] if is_wrapper else unpacked


def import_source_file(
    workspace: Workspace, read: FileRead, now: datetime, *, dry_run: bool, folder: SourceFolder | None = None
) -> ImportCounts:
    """Import the items of one source file and record the file, in one transaction; check its texts before.

    ``folder``: which the file is in; None for the workspace's own.
    """
    with prechecked(new_texts(workspace, read)):
        return _import_source_file(workspace, read, now, folder, dry_run=dry_run)


def _import_source_file(
    workspace: Workspace, read: FileRead, now: datetime, folder: SourceFolder | None, *, dry_run: bool
) -> ImportCounts:
    if _was_always_empty(workspace, read):  # such as the journal of a new nanobot
        read = replace(read, problems=[each for each in read.problems if each.what != EMPTY], is_empty=False)
    if dry_run:
        allowed = without_forgotten(read, import_rules(workspace))
        tally = ImportCounts(problems=list(allowed.problems))
        _import_items(workspace, allowed, tally, now, folder, dry_run=True)
        return tally
    with transaction.atomic():
        lock_workspace(workspace.pk)  # nothing can be forgotten at the same time
        rules = import_rules(workspace)
        allowed, shown = without_forgotten(read, rules), shown_path(workspace, read, rules)
        known: Counter[str] = Counter()
        if _is_unchanged_since_write(workspace, read):
            known["knowledge"] += len(allowed.items)
            allowed = replace(allowed, items=[])
        tally = ImportCounts(unchanged=known, problems=list(allowed.problems))
        source = _import_items(workspace, allowed, tally, now, folder, dry_run=False)
        if read.kind == "document" and allowed.items != read.items:
            documents = MemoryDocument.objects.filter(workspace=workspace, folder=folder, path=read.path)
            write_without_forgotten(documents, by=By(SYNC, now))
        tally.problems = [
            replace(problem, file=shown) if problem.file == read.path else problem for problem in tally.problems
        ]
        row = record_source(workspace, allowed, source, tally.problems, now, folder=folder, left=tally.left)
        if shown != read.path:
            SourceFile.objects.filter(pk=row.pk).update(path=shown)
    return tally


def _was_always_empty(workspace: Workspace, read: FileRead) -> bool:
    """Tell whether a file is empty and nothing was ever imported from it."""
    if not read.is_empty:
        return False
    row = find_source(workspace, read.path)
    if row is not None and read.kind == "history":
        return not HistoryEntry.objects.filter(workspace=workspace, source=read.path).exists()
    return row is None or (row.size == 0 and row.status == SourceFile.Status.READ)


def _is_unchanged_since_write(workspace: Workspace, read: FileRead) -> bool:
    """Tell whether a file is as the hub wrote it, so that it says nothing about what the agent knows."""
    row = find_source(workspace, read.path) if read.kind == "knowledge" else None
    if row is None or read.info is None or row.extra.get(LEFT):
        return False
    return bool(row.extra.get("written") == read.info.sha256)


def _import_items(
    workspace: Workspace,
    read: FileRead,
    tally: ImportCounts,
    now: datetime,
    folder: SourceFolder | None,
    *,
    dry_run: bool,
) -> SourceFile | None:
    source = _import_sessions(workspace, read, tally, now, dry_run=dry_run)
    for item in read.items:
        if isinstance(item, DocumentRecord):
            document_tally = import_document(
                workspace=workspace,
                record=item,
                path=read.path,
                now=now,
                dry_run=dry_run,
                modified_at=read.info.modified_at if read.info else None,
                folder=folder,
            )
            tally.include(document_tally)
        elif isinstance(item, HistoryLog):
            tally.include(
                import_history(workspace=workspace, log=item, path=read.path, now=now, dry_run=dry_run, folder=folder)
            )
        elif isinstance(item, GraphRecord):
            has_own = embedding_settings_for(workspace) is not None
            item_tally = import_graph(
                workspace=workspace, graph=item, path=read.path, now=now, dry_run=dry_run, has_own=has_own
            )
            tally.include(item_tally)
    tally.include(_import_rows(workspace, read, now, dry_run=dry_run))
    return source


def _import_sessions(
    workspace: Workspace, read: FileRead, tally: ImportCounts, now: datetime, *, dry_run: bool
) -> SourceFile | None:
    records = sorted(
        (item for item in read.items if isinstance(item, SessionRecord)), key=lambda item: bool(item.forked_from)
    )
    source, sessions = None, set()
    for item in records:
        counts, row = import_conversation(workspace=workspace, record=item, path=read.path, now=now, dry_run=dry_run)
        tally.include(counts)
        if row and row.session_id:
            source = row
            sessions.add(row.session_id)
    if source and any(item.is_by_id for item in records):
        record_sessions(source, sessions, now)
    return source


def _import_rows(workspace: Workspace, read: FileRead, now: datetime, *, dry_run: bool) -> ImportCounts:
    """Import the items that are stored as rows, one kind at a time."""
    tally = ImportCounts()
    knowledge = [item for item in read.items if isinstance(item, KnowledgeRecord)]
    observations = [item for item in read.items if isinstance(item, ObservationRecord)]
    key_values = [item for item in read.items if isinstance(item, KeyValueRecord)]
    cached = [item for item in read.items if isinstance(item, CachedResponseRecord)]
    if knowledge:
        tally.include(import_knowledge(workspace, knowledge, path=read.path, now=now, dry_run=dry_run))
    if observations:
        tally.include(import_observations(workspace, observations, path=read.path, now=now, dry_run=dry_run))
    if key_values:
        tally.include(import_key_values(workspace, key_values, path=read.path, now=now, dry_run=dry_run))
    if cached:
        tally.include(import_cached_responses(workspace, cached, path=read.path, now=now, dry_run=dry_run))
    return tally


def _finish(result: ImportResult, by: By) -> None:
    workspace, tally = result.workspace, result.tally
    with transaction.atomic():
        if not (result.cancellation or workspace.path.lower().endswith(ARCHIVE_SUFFIXES)):
            tally.problems += mark_missing(workspace, by.at)
        if not (+tally.added or +tally.updated):
            return
        link_sessions(workspace)
        Workspace.objects.filter(pk=workspace.pk).update(updated_at=by.at)
        record(
            by,
            "workspace.imported",
            "workspace",
            workspace.pk,
            import_sentence(tally),
            workspace=workspace,
            detail={"added": dict(tally.added), "updated": dict(tally.updated), "problems": len(tally.problems)},
        )
