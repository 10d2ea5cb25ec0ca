"""Export rows in the agents' own file formats.

Withdrawn and held rows are omitted. A row that hasn't changed since its import is exported as it was, in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from knowledge_app.models import CachedResponse, HistoryEntry, KeyValue, KnowledgeEntry, MemoryDocument, Observation
from knowledge_app.services.documents.limits import stated_limit
from knowledge_app.services.held_rows import unheld
from memoryhub.lib.layouts.records import (
    CachedResponseRecord,
    DocumentRecord,
    HistoryRecord,
    KeyValueRecord,
    KnowledgeRecord,
    ObservationRecord,
)
from memoryhub.lib.layouts.write_rows import cache_json, key_values_json, knowledge_json, observations_json
from sessions_app.models import Workspace


def knowledge_file(workspace: Workspace) -> str:
    """Return Grip's knowledge.json. A corrected entry gets the id that Grip derives from its new text."""
    return knowledge_json(knowledge_records(workspace))


def knowledge_records(workspace: Workspace) -> Iterator[KnowledgeRecord]:
    rows = unheld(KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at=None)).order_by("id")
    return (knowledge_record(row) for row in rows.iterator(chunk_size=1000))


def knowledge_record(row: KnowledgeEntry) -> KnowledgeRecord:
    """Return an entry as a record of Grip's file."""
    is_corrected = row.corrected.keys() & {"category", "content"}
    return KnowledgeRecord(
        content_id=row.identity if is_corrected else row.content_id,
        category=row.category,
        content=row.content,
        source=row.source,
        tags=row.tags,
        access_count=row.access_count,
        created_at=row.created_at,
        accessed_at=row.accessed_at,
        extra=_untouched(row),
    )


def _untouched(row: KnowledgeEntry | Observation) -> dict[str, Any]:
    """Return the extra fields of a row's source, without the original values of corrected fields."""
    return {name: value for name, value in row.extra.items() if name not in row.corrected}


def observations_file(workspace: Workspace) -> str:
    """Return observations as the JSON export that the hub reads."""
    return observations_json(observation_records(workspace))


def observation_records(workspace: Workspace) -> Iterator[ObservationRecord]:
    rows = unheld(Observation.objects.filter(workspace=workspace, withdrawn_at=None)).order_by("id")
    for row in rows.iterator(chunk_size=1000):
        yield ObservationRecord(
            uid=row.uid,
            category=row.category,
            content=row.content,
            source=row.source,
            occurred_at=row.occurred_at,
            occurred_at_text=row.occurred_at_text,
            extra=_untouched(row),
        )


def key_values_file(workspace: Workspace) -> str:
    """Return grid's kv.json."""
    return key_values_json(key_value_records(workspace))


def key_value_records(workspace: Workspace) -> Iterator[KeyValueRecord]:
    rows = unheld(KeyValue.objects.filter(workspace=workspace, withdrawn_at=None)).order_by("id")
    return (KeyValueRecord(row.key, row.value, row.is_json) for row in rows.iterator(chunk_size=1000))


def cache_file(workspace: Workspace) -> str:
    """Return Grip's semantic_cache.json."""
    return cache_json(cached_records(workspace))


def cached_records(workspace: Workspace) -> Iterator[CachedResponseRecord]:
    rows = CachedResponse.objects.filter(workspace=workspace).order_by("id")
    for row in rows.iterator(chunk_size=500):
        yield CachedResponseRecord(
            key=row.key,
            model=row.model,
            response=row.response,
            preview=row.preview,
            created_at=row.created_at,
            accessed_at=row.accessed_at,
            extra=row.extra,
        )


def document_records(workspace: Workspace) -> Iterator[DocumentRecord]:
    """Yield the current memory documents, with the original bytes if the text hasn't changed since."""
    documents = MemoryDocument.objects.filter(workspace=workspace).exclude(head=None).select_related("head")
    for document in documents.order_by("name"):
        if document.head:
            raw = document.head.raw
            yield DocumentRecord(
                document.name,
                document.head.content,
                None if raw is None else bytes(raw),
                document.separator,
                stated_limit(document),
                document.is_instructions,
            )


def history_records(workspace: Workspace) -> Iterator[HistoryRecord]:
    """Yield the history in order, without withdrawn and held entries."""
    rows = HistoryEntry.objects.filter(workspace=workspace, withdrawn_at=None, hold=None).select_related("session")
    for row in rows.in_order().iterator(chunk_size=1000):
        yield HistoryRecord(
            content=row.content,
            source_hash="",
            occurred_at=row.occurred_at,
            occurred_at_text=row.occurred_at_text,
            session_key=row.session.key if row.session else "",
            is_archived=row.is_archived,
            file=row.source,
            extra=row.extra,
        )
