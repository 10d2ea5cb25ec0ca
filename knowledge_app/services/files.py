"""Rows as the agents' own files: what an agent would write with the memory that the hub has now.

Withdrawn rows are left out. A row that nobody touched since it was imported comes out as it went in, in its place.
"""

from __future__ import annotations

from typing import Any

from knowledge_app.models import CachedResponse, KeyValue, KnowledgeEntry, Observation
from memoryhub.lib.layouts.records import (
    CachedResponseRecord,
    KeyValueRecord,
    KnowledgeRecord,
    ObservationRecord,
)
from memoryhub.lib.layouts.write_rows import cache_json, key_values_json, knowledge_json, observations_json
from sessions_app.models import Workspace


def knowledge_file(workspace: Workspace) -> str:
    """Return Grip's knowledge.json. A corrected entry has the id that Grip gives to what it says now."""
    rows = KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at=None).order_by("id")
    return knowledge_json(_knowledge(row) for row in rows.iterator(chunk_size=1000))


def _knowledge(row: KnowledgeEntry) -> KnowledgeRecord:
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
    """Return the further fields of a row's source, without what it had in the place of a corrected field."""
    return {name: value for name, value in row.extra.items() if name not in row.corrected}


def observations_file(workspace: Workspace) -> str:
    """Return observations as the JSON export that the hub reads."""
    rows = Observation.objects.filter(workspace=workspace, withdrawn_at=None).order_by("id")
    return observations_json(
        ObservationRecord(
            uid=row.uid,
            category=row.category,
            content=row.content,
            source=row.source,
            occurred_at=row.occurred_at,
            occurred_at_text=row.occurred_at_text,
            extra=_untouched(row),
        )
        for row in rows.iterator(chunk_size=1000)
    )


def key_values_file(workspace: Workspace) -> str:
    """Return grid's kv.json."""
    rows = KeyValue.objects.filter(workspace=workspace, withdrawn_at=None)
    return key_values_json(KeyValueRecord(row.key, row.value, row.is_json) for row in rows)


def cache_file(workspace: Workspace) -> str:
    """Return Grip's semantic_cache.json."""
    rows = CachedResponse.objects.filter(workspace=workspace).order_by("id")
    return cache_json(
        CachedResponseRecord(
            key=row.key,
            model=row.model,
            response=row.response,
            preview=row.preview,
            created_at=row.created_at,
            accessed_at=row.accessed_at,
            extra=row.extra,
        )
        for row in rows.iterator(chunk_size=500)
    )
