"""Memory documents that have to be written to agents' files.

A document is pending if its head isn't what its file was last seen to contain. There is no other queue, so nothing is
lost if a process dies.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from knowledge_app.models import HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.outside_edits import LATE_AFTER_WRITE, SYNC
from knowledge_app.services.documents.revisions import content_hash, revise_document
from knowledge_app.services.documents.write_rules import writable
from memoryhub.lib.layouts.documents import document_bytes
from memoryhub.lib.layouts.records import DocumentRecord
from sessions_app.models import Workspace
from sessions_app.services.audit import By, record

WITHOUT_FORGOTTEN = "without forgotten text, for the agent's file"


def unwritten_documents() -> QuerySet[MemoryDocument]:
    """Return the documents of all workspaces whose head isn't in their file yet, except blocked ones."""
    behind = MemoryDocument.objects.filter(head__isnull=False).exclude(synced_revision=F("head"))
    return behind.exclude(Exists(blocking().filter(document=OuterRef("pk")))).select_related(
        "head", "synced_revision", "written_over"
    )


def blocking() -> QuerySet[HeldChange]:
    """Return the pending changes that block writing their documents until a person decides."""
    return file_changes().filter(file_restored_at=None)


def file_changes() -> QuerySet[HeldChange]:
    """Return the pending changes of agents' files."""
    return HeldChange.objects.filter(status=HeldChange.Status.PENDING, author_kind=SYNC.kind, author_name=SYNC.name)


def may_write_over(document: MemoryDocument, item: DocumentRecord) -> bool:
    """Tell whether a file can be overwritten: the head is based on its text, or it was emptied."""
    synced = document.synced_revision
    if item.content:
        return synced is not None and item.content == synced.content
    decided = Q(status=HeldChange.Status.REJECTED) | Q(file_restored_at__isnull=False)
    emptied = HeldChange.objects.filter(decided, document=document, base=synced, proposed_hash=content_hash(""))
    return emptied.exists() or (synced is not None and not synced.content)


def write_without_forgotten(documents: QuerySet[MemoryDocument], *, by: By) -> None:
    """Let the files of these documents count as behind if the hub may write them.

    The stored text is what a file contains without what was forgotten. The same text becomes the head again, so that
    it replaces the file's. A document that has to be written anyway isn't changed.
    """
    for document in documents.filter(writable(), synced_revision=F("head")).select_related("workspace", "head"):
        if document.head is not None:
            revise_document(document, document.head.content, base=document.head, by=by, reason=WITHOUT_FORGOTTEN)


def bytes_are_kept(document: MemoryDocument, content: str, raw: bytes) -> bool:
    """Tell whether a file's bytes can be restored from the revision that it was last seen to contain."""
    synced = document.synced_revision
    if synced is None or not raw:
        return not raw
    kept = bytes(synced.raw) if synced.raw is not None else None
    return raw == kept or document_bytes(content, raw) == raw


def bytes_of(revision: MemoryRevision, like: bytes) -> bytes:
    """Return a revision as bytes: the original ones if it came from a file, else in the existing file's style."""
    if revision.raw is not None:
        return bytes(revision.raw)
    return document_bytes(revision.content, like)


@transaction.atomic
def record_written(document: MemoryDocument, revision: MemoryRevision, *, path: str, by: By) -> bool:
    """Record that a document's file contains this revision; False if a sync recorded another one in the meantime."""
    old = document.synced_revision
    is_recent = document.written_at is not None and by.at - document.written_at <= LATE_AFTER_WRITE
    over = document.written_over if is_recent and document.written_over else old
    same = MemoryDocument.objects.filter(pk=document.pk, synced_revision=old)
    if not same.update(synced_revision=revision, written_over=over, written_at=by.at, path=path):
        return False
    workspace = Workspace.objects.get(pk=document.workspace_id)
    record(
        by,
        "document.written",
        "document",
        document.pk,
        f"{document.name} written to the agent's folder: revision {revision.number}",
        workspace=workspace,
        before_hash=old.content_hash if old else "",
        after_hash=revision.content_hash,
    )
    return True
