"""The sync state of a workspace's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import HeldChange, KnowledgeEntry, MemoryDocument, MemoryRevision
from knowledge_app.services.documents import limits
from knowledge_app.services.documents.outside_edits import ACCEPTED_REASONS, SYNC
from knowledge_app.services.documents.pending_writes import file_changes
from knowledge_app.services.documents.write_rules import FILE_PATHS, refusal_of, why_not_writable, writable
from knowledge_app.services.rows.knowledge_json import knowledge_mark, unwritten_entries
from memoryhub.sync.write_back import KNOWLEDGE
from sessions_app.models import SourceFile, SyncState, Workspace

SHOWN_CHANGES = 10
Standing = Literal["in_step", "ahead", "held", "missing", "refused"]
LABELS: dict[Standing, Promise | str] = {
    "in_step": _("synced"),
    "ahead": _("hub has newer text"),
    "held": _("held for review"),
    "missing": _("missing in the folder"),
    "refused": _("can't be written"),
}


@dataclass(frozen=True)
class FileStatus:
    """The state of a file that the hub may write, and why; its document and held change, if any.

    ``sizes``: the text's size beside each limit of the agent's program.
    """

    path: str
    kind: str
    standing: Standing
    note: str = ""
    document: MemoryDocument | None = None
    held: HeldChange | None = None
    sizes: Sequence[str] = ()
    is_over_limit: bool = False

    @property
    def label(self) -> str:
        return str(LABELS[self.standing])


def written_files(workspace: Workspace) -> list[FileStatus]:
    """Return the files in a workspace's folder that the hub may write, memory documents first. Four queries."""
    if not workspace.path or not workspace.can_be_written:
        return []
    places = FILE_PATHS.get(workspace.layout, {})
    state = SyncState.objects.filter(workspace=workspace).first()
    refused = state.unwritten if state else {}
    gone = set(
        SourceFile.objects.filter(workspace=workspace, status=SourceFile.Status.MISSING).values_list(
            "path", flat=True
        )
    )
    held = {change.document_id: change for change in file_changes().filter(workspace=workspace).order_by("-id")}
    rows = MemoryDocument.objects.filter(writable(), workspace=workspace, head__isnull=False)
    files = [
        _with_limits(_document(row, row.path or places[row.name], held.get(row.pk), refused, gone))
        for row in rows.select_related("head", "synced_revision").order_by("id")
    ]
    if workspace.layout == "grip":
        files += _knowledge(workspace, state, refused)
    return files


def read_only_reasons(workspace: Workspace) -> dict[str, str]:
    """Return why the hub never writes a workspace's other documents, by path. One query."""
    rows = MemoryDocument.objects.filter(workspace=workspace).exclude(path="")
    reasons = {
        row.path: why_not_writable(row, workspace) for row in rows.only("path", "name", "folder", "is_instructions")
    }
    return {path: why for path, why in reasons.items() if why}


def _with_limits(file: FileStatus) -> FileStatus:
    if file.document is None or file.document.head is None:
        return file
    text = file.document.head.content
    note = file.note or (refusal_of(file.document, text) if file.standing == "ahead" else "")
    is_over = bool(limits.excesses(file.document, text))
    return replace(file, note=note, sizes=limits.sizes(file.document, text), is_over_limit=is_over)


def _document(
    row: MemoryDocument, path: str, held: HeldChange | None, refused: dict[str, str], gone: set[str]
) -> FileStatus:
    if held is not None and held.file_restored_at is None:
        return FileStatus(path, "document", "held", held.reason, row, held)
    if row.head_id != row.synced_revision_id:
        standing: Standing = "refused" if path in refused else "ahead"
        return FileStatus(path, "document", standing, refused.get(path, ""), row, held)
    return FileStatus(path, "document", "missing" if path in gone else "in_step", "", row, held)


def _knowledge(workspace: Workspace, state: SyncState | None, refused: dict[str, str]) -> list[FileStatus]:
    source = SourceFile.objects.filter(workspace=workspace, folder=None, kind="knowledge").order_by("id").first()
    path = source.path if source else KNOWLEDGE
    why = refused.get(path, "")
    if why:
        return [FileStatus(path, "knowledge", "refused", why)]
    rows = KnowledgeEntry.objects.filter(workspace=workspace)
    if source is None and not rows.exists():
        return []
    is_compared = state is not None and state.knowledge_mark == knowledge_mark(workspace)
    if not is_compared and any(rows.exists() for rows in unwritten_entries(workspace)):
        return [FileStatus(path, "knowledge", "ahead")]
    is_gone = source is not None and source.status == SourceFile.Status.MISSING
    return [FileStatus(path, "knowledge", "missing" if is_gone else "in_step")]


def waiting_files(workspace: Workspace) -> list[FileStatus]:
    """Return the files that have older text than the hub."""
    return [file for file in written_files(workspace) if file.standing in ("ahead", "refused")]


def accepted_changes(workspace: Workspace) -> list[MemoryRevision]:
    """Return the latest revisions that were accepted from the agent's files."""
    documents = MemoryDocument.objects.filter(workspace=workspace)
    rows = MemoryRevision.objects.filter(document__in=documents, author_kind=SYNC.kind, number__gt=1)
    accepted = rows.filter(reason__in=ACCEPTED_REASONS).select_related("document")
    return list(accepted.order_by("-id")[:SHOWN_CHANGES])
