"""Write changes made in the hub to the agent's folder: memory documents, and Grip's knowledge.json.

Nothing else in a folder is ever written. A file is only overwritten if the hub has its current bytes; anything
written to it at the same moment is imported afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from django.conf import settings
from django.db import transaction
from django.db.models import Max, QuerySet

from knowledge_app.models import KnowledgeEntry, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.outside_edits import import_late_text, keep_bytes
from knowledge_app.services.documents.pending_writes import (
    bytes_are_kept,
    bytes_of,
    may_write_over,
    record_written,
    unwritten_documents,
)
from knowledge_app.services.documents.write_rules import FILE_PATHS, refusal_of, writable
from knowledge_app.services.rows.importing import import_knowledge
from knowledge_app.services.rows.knowledge_json import plan_knowledge, record_knowledge_written
from memoryhub.forgetting.import_filter import import_rules, without_forgotten
from memoryhub.lib.files.safe_folder import FileInfo, Folder, FolderMissing, UnreadableFile, join_path
from memoryhub.lib.layouts.documents import parse_document
from memoryhub.lib.layouts.grip import parse_knowledge
from memoryhub.lib.layouts.records import DetectedLayout, DocumentRecord, FileKind, FileRead, KnowledgeRecord
from memoryhub.sync.atomic_replace import Replaced, import_quiet_copies, private_names, replace_file
from sessions_app.models import SourceFile, Workspace
from sessions_app.services.audit import By
from sessions_app.services.sources import find_source, record_source
from sessions_app.services.workspaces import lock_workspace

KNOWLEDGE = "memory/knowledge.json"
CHANGED = "changed in the meantime; the next sync imports that first"
KEPT_HASHES = 8


@dataclass(frozen=True)
class FileWritten:
    """The result for a file: ``written``, ``waits`` for the next sync, or ``refused``."""

    path: str
    verdict: Literal["written", "waiting", "refused"]
    why: str = ""


def write_files(folder: Folder, found: DetectedLayout, workspace: Workspace, *, by: By) -> list[FileWritten]:
    """Write the pending files of a workspace's folder; return the result for each."""
    waiting = _written_here(unwritten_documents(), found, workspace)
    done = [_write_in_place(folder, document_path(row, found), workspace, row, by) for row in waiting]
    if found.layout == "grip":
        done += _write_knowledge(folder, join_path(found.workspace, KNOWLEDGE), workspace, by)
    return done


def _written_here(
    documents: QuerySet[MemoryDocument], found: DetectedLayout, workspace: Workspace
) -> QuerySet[MemoryDocument]:
    """Return the documents that the hub may write, none in the folder of a hub's export."""
    if found.layout != workspace.layout:
        return documents.none()
    return documents.filter(writable(), workspace=workspace).order_by("id")


def import_copies(folder: Folder, found: DetectedLayout, workspace: Workspace, now: datetime, *, wait: bool) -> int:
    """Import what was written to files while the hub replaced them, and remove the copies.

    Return the number of copies that aren't quiet yet.
    """
    left = 0
    quiet = settings.MEMORYHUB_QUIET_SECONDS
    for path, import_copy in _copy_importers(found, workspace, now):
        with suppress(FolderMissing), place_of(folder, workspace, path) as (parent, name):
            if private_names(parent, name):
                left += import_quiet_copies(parent, name, import_copy, quiet=quiet, wait=wait)
    return left


@contextmanager
def place_of(folder: Folder, workspace: Workspace, path: str) -> Iterator[tuple[Folder, str]]:
    """Open the folder of a document, and yield it with the path in it: the agent's, or the project's own folder.

    Raises FolderMissing.
    """
    if not path.startswith("/"):
        yield folder, path
        return
    root = Path(workspace.instructions_path)
    if not workspace.instructions_path or not Path(path).is_relative_to(root):
        raise FolderMissing("The folder of the project isn't known.")
    with Folder(root) as outside:
        yield outside, str(Path(path).relative_to(root))


def document_path(document: MemoryDocument, found: DetectedLayout) -> str:
    """Return the path of a document's file below the folder."""
    if document.path and (document.synced_revision_id or found.layout not in FILE_PATHS):
        return document.path
    return join_path(found.workspace, FILE_PATHS[found.layout][document.name])


def new_bytes(document: MemoryDocument, current: bytes) -> bytes:
    """Return the bytes to write to a document's file."""
    return bytes_of(_head(document), current)


def _head(document: MemoryDocument) -> MemoryRevision:
    if document.head is None:
        raise ValueError("a document without text is never written")
    return document.head


def _write_in_place(folder: Folder, path: str, workspace: Workspace, document: MemoryDocument, by: By) -> FileWritten:
    if why := refusal_of(document, _head(document).content):
        return FileWritten(path, "refused", why)
    try:
        with place_of(folder, workspace, path) as (parent, name):
            return _write_document(parent, name, path, workspace, document, by)
    except FolderMissing as error:
        return FileWritten(path, "refused", error.message)


def _write_document(
    folder: Folder, name: str, path: str, workspace: Workspace, document: MemoryDocument, by: By
) -> FileWritten:
    """Write a document to the file ``name`` in a folder, which the hub knows by ``path``."""
    raw, info, why = _current(folder, name)
    if why:
        return FileWritten(path, "refused", why)
    if info is not None:
        item, is_whole = _read(workspace, path, raw, info)
        if not may_write_over(document, item):
            return FileWritten(path, "waiting", CHANGED)
        if is_whole and not bytes_are_kept(document, item.content, raw):
            keep_bytes(document, item, by.at)
            document = unwritten_documents().get(pk=document.pk)
    content = new_bytes(document, raw)
    result = Replaced("written", info=info)
    if info is None or content != raw:
        result = replace_file(folder, name, content, expected=info.sha256 if info else None)
    if result.verdict == "written" and result.info:
        record_written(document, _head(document), path=path, by=by)
        record_source(workspace, FileRead(path, "document", result.info), None, [], by.at)
    return _outcome(path, result)


def _read(workspace: Workspace, path: str, raw: bytes, info: FileInfo) -> tuple[DocumentRecord, bool]:
    """Return a file's text without forgotten data, and whether nothing was left out."""
    read = parse_document(path, raw, info)
    allowed = without_forgotten(read, import_rules(workspace))
    item = allowed.items[0]
    if not isinstance(item, DocumentRecord):
        raise TypeError("a document's file holds a document")
    return item, allowed.items == read.items


def _write_knowledge(folder: Folder, path: str, workspace: Workspace, by: By) -> list[FileWritten]:
    raw, info, why = _current(folder, path)
    source = find_source(workspace, path)
    if info is not None and (source is None or source.content_hash != info.sha256):
        return [FileWritten(path, "waiting", CHANGED)]
    is_own = source is not None and info is not None and source.extra.get("written") == info.sha256
    plan = plan_knowledge(workspace, None if info is None else raw, is_own=is_own)
    if plan.text is None or why:
        record_knowledge_written(workspace, plan if not why else plan_knowledge(workspace, b""), by=by)
        reason = why if plan.text is not None else plan.why_not
        return [FileWritten(path, "refused", reason)] if reason else []
    if source is not None and info is not None:
        _record_replaced(source, info.sha256)
    result = replace_file(folder, path, plan.text.encode(), expected=info.sha256 if info else None)
    if result.verdict == "written" and result.info:
        record_knowledge_written(workspace, plan, by=by)
        source = record_source(workspace, FileRead(path, "knowledge", result.info), source, [], by.at)
        source.extra = source.extra | {"written": result.info.sha256}
        source.save(update_fields=["extra"])
    return [_outcome(path, result)]


def _record_replaced(source: SourceFile, sha256: str) -> None:
    """Record the hash of the bytes to be replaced, so that their copy is recognised after a crash."""
    known = [sha256, *(old for old in source.extra.get("replaced", []) if old != sha256)][:KEPT_HASHES]
    if source.extra.get("replaced") != known:
        source.extra = source.extra | {"replaced": known}
        source.save(update_fields=["extra"])


def _current(folder: Folder, path: str) -> tuple[bytes, FileInfo | None, str]:
    """Return a file's bytes and info (None if it doesn't exist), or the reason why it can't be written."""
    if not folder.exists(path):
        parent = path.rpartition("/")[0]
        there = not parent or folder.is_folder(parent)
        return b"", None, "" if there else f"the agent has no folder {parent} yet"
    try:
        raw, info = folder.read_bytes(path, even_if_unchanged=True, no_wait=True)  # the hub never has half a text
    except UnreadableFile as error:
        return b"", None, error.message
    return raw, info, ""


def _outcome(path: str, result: Replaced) -> FileWritten:
    if result.verdict == "written":
        return FileWritten(path, "written")
    if result.verdict == "changed":
        return FileWritten(path, "waiting", CHANGED)
    return FileWritten(path, "refused", result.why)


def _copy_importers(
    found: DetectedLayout, workspace: Workspace, now: datetime
) -> list[tuple[str, Callable[[bytes], None]]]:
    """Return the files that the hub may have replaced, each with a function that imports a copy's bytes."""
    rows = _written_here(MemoryDocument.objects.all(), found, workspace)
    importers: list[tuple[str, Callable[[bytes], None]]] = []
    for row in rows:
        path = document_path(row, found)
        importers.append((path, lambda raw, row=row, path=path: _import_late(workspace, row, path, raw, now)))  # type: ignore[misc]
    if found.layout == "grip":
        path = join_path(found.workspace, KNOWLEDGE)
        importers.append((path, lambda raw, path=path: _import_late_knowledge(workspace, path, raw, now)))  # type: ignore[misc]
    return importers


def _import_late(workspace: Workspace, document: MemoryDocument, path: str, raw: bytes, now: datetime) -> None:
    with transaction.atomic():
        lock_workspace(workspace.pk)  # nothing can be forgotten at the same time
        item, _ = _read(workspace, path, raw, FileInfo(len(raw), 0, ""))
        import_late_text(document, item, now)


def _import_late_knowledge(workspace: Workspace, path: str, raw: bytes, now: datetime) -> None:
    source = find_source(workspace, path)
    sha256 = hashlib.sha256(raw).hexdigest()
    if source is not None and sha256 in [source.content_hash, *source.extra.get("replaced", [])]:
        return
    kind: FileKind = "knowledge"
    found = FileRead(path, kind, None, parse_knowledge(path, raw).items)
    with transaction.atomic():
        lock_workspace(workspace.pk)  # nothing can be forgotten at the same time
        read = without_forgotten(found, import_rules(workspace))
        records = [item for item in read.items if isinstance(item, KnowledgeRecord)]
        entries = KnowledgeEntry.objects.filter(workspace=workspace)
        latest = entries.aggregate(pk=Max("pk"))["pk"] or 0
        import_knowledge(workspace, records, path=path, now=now, dry_run=False)
        entries.filter(pk__gt=latest).update(awaits_file_since=now)  # the file that replaced the copy lacks them
