"""Further folders that feed a workspace, beside its own: added, imported, followed, and only read.

Everything read from one is named with the folder's label, so that it never mixes with the same name from another
folder: documents as ``label/MEMORY.md``, key-values as ``label/key``, and sessions as ``cli:direct@label``, unless
their keys are unique everywhere. Source files have absolute paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext

from knowledge_app.models import MemoryDocument
from memoryhub.hygiene.imported import find_secrets
from memoryhub.lib.errors import Conflict, Invalid, MemoryHubError
from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.projects import in_project
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.layouts.records import (
    DetectedLayout,
    DocumentRecord,
    FileRead,
    GraphRecord,
    HistoryLog,
    HistoryRecord,
    Item,
    KeyValueRecord,
    Problem,
    Project,
    SessionRecord,
)
from memoryhub.origins.inference import infer_origins
from memoryhub.sync.importing import (
    LOCK_SECONDS,
    MAX_EXPLAINED,
    import_lock,
    import_source_file,
    instructions_folder,
    is_below_roots,
    own_path,
)
from memoryhub.sync.instructions import read_instructions
from memoryhub.sync.overlaps import overlapping
from memoryhub.sync.projects import choose_project
from memoryhub.sync.syncing import SyncResult, expected_errors, import_files, is_export, refuse_emptied
from sessions_app.models import SourceFile, SourceFolder, Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.syncing import QUIET_NOTE
from sessions_app.services.workspaces import lock_workspace

UNIQUE_KEYS = ("claude-code", "codex", "gemini-cli", "opencode")  # layouts whose session keys contain unique ids
MAX_NAME = 200  # characters of a document's name
GRAPH = "a semantic graph; only the graph of the workspace's own folder is imported"


def add_folder(
    workspace: Workspace,
    path: Path,
    *,
    by: By,
    project: str = "",
    layout: str = "auto",
    label: str = "",
    follow: bool = False,
    may_read: Callable[[Path], bool] | None = None,
) -> SourceFolder:
    """Add a folder to a workspace, or one again that was removed; it isn't read yet.

    ``project``: its name, if the folder is a home with several. ``label``: by default the program's name.
    ``may_read``: as for ``import_workspace``. Raises FolderMissing, Invalid, NotFound, Conflict, ImportRefused.
    """
    folder = open_source(workspace, path, project=project, layout=layout, label=label, may_read=may_read)
    folder.is_followed, folder.created_at = follow, by.at
    with transaction.atomic():
        lock_workspace(workspace.pk)
        known = SourceFolder.objects.filter(workspace=workspace, path=folder.path, project=folder.project).first()
        if known is None:
            folder.label = folder.label or _free_label(workspace, folder.layout)
            folder.save()
        elif known.removed_at is None:
            raise Conflict(gettext("This folder already feeds this workspace."), code="known_folder")
        else:
            known.removed_at, known.is_followed = None, follow
            known.save(update_fields=["removed_at", "is_followed"])
            folder = known
        _record(folder, "added", by)
    return folder


def open_source(
    workspace: Workspace,
    path: Path,
    *,
    project: str = "",
    layout: str = "auto",
    label: str = "",
    may_read: Callable[[Path], bool] | None = None,
) -> SourceFolder:
    """Return an unsaved row for a folder, with what was found there. Raises the errors of ``add_folder``."""
    path = own_path(path)
    if path.is_file():
        raise Invalid(gettext("Only a folder can be added to a workspace."), code="not_a_folder")
    with Folder(path) as folder:
        found, chosen = choose_project(folder, detect(folder, layout), project)
    if (str(path), found.project) == (workspace.path, workspace.project):
        raise Conflict(gettext("This is the workspace's own folder."), code="known_folder")
    if workspace in overlapping(path, found):
        raise Conflict(gettext("This workspace already has this memory, from another folder."), code="known_folder")
    if label and (slugify(label) != label or len(label) > 64 or not _is_free(workspace, label)):
        words = gettext("%(label)s can't be the folder's name here. Use another one, of letters, digits and hyphens.")
        raise Invalid(words % {"label": label}, code="bad_label")
    return SourceFolder(
        workspace=workspace,
        label=label,
        path=str(path),
        project=found.project,
        layout=found.program or found.layout,
        layout_version=found.version,
        instructions_path=_instructions(path, chosen, may_read or is_below_roots),
    )


def _instructions(path: Path, chosen: Project | None, may_read: Callable[[Path], bool]) -> str:
    return str(instructions_folder(path, chosen, may_read) or "")


def _is_free(workspace: Workspace, label: str) -> bool:
    named = MemoryDocument.objects.filter(workspace=workspace, name__startswith=f"{label}/")
    return not named.exists() and not SourceFolder.objects.filter(workspace=workspace, label=label).exists()


def _free_label(workspace: Workspace, layout: str) -> str:
    labels = chain([layout], (f"{layout}-{number}" for number in count(2)))
    return next(label for label in labels if _is_free(workspace, label))


@transaction.atomic
def follow_folder(folder: SourceFolder, *, is_followed: bool, by: By) -> None:
    """Let the worker follow a folder, or not."""
    folder.is_followed = is_followed
    folder.save(update_fields=["is_followed"])
    _record(folder, "followed" if is_followed else "unfollowed", by)


@transaction.atomic
def remove_folder(folder: SourceFolder, *, by: By) -> None:
    """Stop reading a folder. Everything that was imported from it stays."""
    folder.removed_at, folder.is_followed = by.at, False
    folder.failed_at, folder.error_code, folder.error = None, "", ""
    folder.save(update_fields=["removed_at", "is_followed", "failed_at", "error_code", "error"])
    _record(folder, "removed", by)


def _record(folder: SourceFolder, what: str, by: By) -> None:
    workspace, text = folder.workspace, f"Folder {what}: {folder.label}"
    detail = {"path": folder.path, "project": folder.project}
    record(by, f"workspace.folder_{what}", "workspace", workspace.pk, text, workspace=workspace, detail=detail)


def sync_folders(
    workspace: Workspace, *, by: By, full: bool = False
) -> list[tuple[SourceFolder, SyncResult | MemoryHubError]]:
    """Sync the further folders of a workspace; return each with its result or error."""
    results: list[tuple[SourceFolder, SyncResult | MemoryHubError]] = []
    for folder in workspace.source_folders.filter(removed_at=None).order_by("id"):
        try:
            results.append((folder, sync_folder(folder, by=by, full=full)))
        except MemoryHubError as error:
            results.append((folder, error))
    return results


def sync_folder(folder: SourceFolder, *, by: By, full: bool = False, wait: bool = True) -> SyncResult:
    """Import what is new in a folder into its workspace, and store the result in the folder's row.

    Without ``wait``, a folder that is being imported is refused at once. Raises FolderMissing, Invalid,
    ImportRefused, and the errors of ``expected_errors``.
    """
    try:
        path, timeout = own_path(Path(folder.path)), LOCK_SECONDS if wait else 0
        with import_lock(path, folder.project, timeout=timeout), expected_errors(path):
            result = _sync(folder, by, full=full)
    except MemoryHubError as error:
        values = {"failed_at": timezone.now(), "error_code": error.code, "error": error.message}
        SourceFolder.objects.filter(pk=folder.pk).update(**values)
        raise
    _record_success(folder, result)
    return result


def _sync(source: SourceFolder, by: By, *, full: bool) -> SyncResult:
    workspace = source.workspace
    with Folder(Path(source.path), quiet_seconds=settings.MEMORYHUB_QUIET_SECONDS) as folder:
        found = _layout(folder, source)
        refuse_emptied(folder, found, SourceFile.objects.filter(folder=source))
        result = SyncResult(workspace, found, source)
        import_files(folder, result, _read(folder, found, source), by, full=full)
    find_secrets(workspace, count=result.tally.added["entries"], now=by.at)
    if +result.tally.added or +result.tally.updated:
        infer_origins(workspace, now=by.at, limit=MAX_EXPLAINED)
    return result


def preview(source: SourceFolder, *, by: By) -> SyncResult:
    """Return what importing an unsaved folder would do. Reads only."""
    with Folder(Path(source.path), quiet_seconds=settings.MEMORYHUB_QUIET_SECONDS) as folder:
        result = SyncResult(source.workspace, _layout(folder, source), source)
        source.label = source.label or _free_label(source.workspace, source.layout)
        for read in chain(_read(folder, result.found, source), read_instructions(source, {})):
            result.tally.include(import_source_file(source.workspace, read, by.at, dry_run=True, folder=source))
    return result


def _layout(folder: Folder, source: SourceFolder) -> DetectedLayout:
    known = SourceFile.objects.filter(folder=source.pk or 0)
    found = detect(folder, "auto" if is_export(folder, known) else source.layout)
    return in_project(folder, found, source.project) if source.project else found


def _record_success(folder: SourceFolder, result: SyncResult) -> None:
    """Store that a sync succeeded; one without changes soon after another isn't stored."""
    now = timezone.now()
    row = SourceFolder.objects.get(pk=folder.pk)
    is_fresh = row.succeeded_at is not None and now - row.succeeded_at < QUIET_NOTE
    if is_fresh and not (result.has_changed or row.error_code):
        return
    values: dict[str, Any] = {"succeeded_at": now, "failed_at": None, "error_code": "", "error": ""}
    values |= {"layout_version": result.found.version} | ({"changed_at": now} if result.has_changed else {})
    SourceFolder.objects.filter(pk=folder.pk).update(**values)


def _read(folder: Folder, found: DetectedLayout, source: SourceFolder) -> Iterator[FileRead]:
    for read in read_folder(folder, found, zone=ZoneInfo(settings.TIME_ZONE)):
        yield named(read, source)


def named(read: FileRead, source: SourceFolder) -> FileRead:
    """Return what was read from a file of a further folder, named with the folder; see the module."""
    items, graphs = list(_named(read.items, source)), [item for item in read.items if isinstance(item, GraphRecord)]
    problems = [replace(problem, file=_absolute(problem.file, source)) for problem in read.problems]
    path = _absolute(read.path, source)
    problems += [Problem(path, None, GRAPH, "not imported", "ignored") for _ in graphs]
    return replace(read, path=path, items=items, problems=problems)


def _named(items: Iterable[Item], source: SourceFolder) -> Iterator[Item]:
    label = source.label
    for item in items:
        if isinstance(item, DocumentRecord):
            yield replace(item, name=_document_name(item.name, label))
        elif isinstance(item, KeyValueRecord):
            yield replace(item, key=f"{label}/{item.key}")
        elif isinstance(item, SessionRecord):
            parent, original = _key(item.parent_key, source), _key(item.forked_from, source)
            yield replace(item, key=_key(item.key, source), parent_key=parent, forked_from=original)
        elif isinstance(item, HistoryLog):
            yield replace(item, entries=[_history_entry(entry, source) for entry in item.entries])
        elif not isinstance(item, GraphRecord):
            yield item


def _history_entry(entry: HistoryRecord, source: SourceFolder) -> HistoryRecord:
    return replace(entry, session_key=_key(entry.session_key, source), file=_absolute(entry.file, source))


def _absolute(path: str, source: SourceFolder) -> str:
    return path if not path or path.startswith("/") else f"{source.path}/{path}"


def _key(key: str, source: SourceFolder) -> str:
    return key if not key or source.layout in UNIQUE_KEYS else f"{key}@{source.label}"


def _document_name(name: str, label: str) -> str:
    room = MAX_NAME - len(label) - 1
    return f"{label}/{name}" if len(name) <= room else f"{label}/…{name[1 - room :]}"
