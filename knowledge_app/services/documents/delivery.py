"""Tell whether the agent's file has a document's current text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db.models import QuerySet

from knowledge_app.models import Fact, MemoryDocument
from knowledge_app.services.documents.pending_writes import blocking, unwritten_documents
from knowledge_app.services.documents.write_rules import is_writable, writable
from memoryhub.lib.text.facts import fact_lines
from sessions_app.models import SyncState, Workspace


@dataclass(frozen=True)
class Delivery:
    """The state of a document's file. ``at``: when the hub wrote it. ``why``: the reason why it can't be written."""

    state: Literal["ahead", "refused", "delivered"]
    at: datetime | None = None
    why: str = ""


def delivery_of(document: MemoryDocument) -> Delivery | None:
    """Return the delivery of a document's text.

    None if the hub never writes the document, if the text comes from the file, or if a held change blocks the file.
    """
    workspace, head = document.workspace, document.head
    if head is None or not is_writable(document, workspace):
        return None
    if document.head_id == document.synced_revision_id:
        is_written = document.written_at is not None and document.written_at >= head.created_at
        return Delivery("delivered", document.written_at) if is_written else None
    if blocking().filter(document=document).exists():
        return None
    state = SyncState.objects.filter(workspace=workspace).first()
    why = state.unwritten.get(document.path, "") if state else ""
    return Delivery("refused", why=why) if why else Delivery("ahead")


def delivery_of_fact(fact: Fact) -> Delivery | None:
    """Return the delivery of a fact's document; None if the file has the fact already, or lacks a removed one."""
    found, synced = delivery_of(fact.document), fact.document.synced_revision
    if found is None or found.state == "delivered" or synced is None:
        return found
    is_in_file = any(line.text == fact.text for line in fact_lines(synced.content, fact.document.separator))
    return None if is_in_file == (fact.died_id is None) else found


def undelivered_documents(workspaces: QuerySet[Workspace]) -> QuerySet[MemoryDocument]:
    """Return the documents whose files have older text and could be written."""
    return unwritten_documents().filter(writable(), workspace__in=workspaces.values("pk"))
