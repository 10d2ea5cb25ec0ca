"""Write knowledge, cached responses, key-values and observations as agents' files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from memoryhub.lib.json_numbers import dump_json, respelled
from memoryhub.lib.layouts.records import CachedResponseRecord, KeyValueRecord, KnowledgeRecord, ObservationRecord

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def knowledge_json(records: Iterable[KnowledgeRecord]) -> str:
    """Return Grip's memory/knowledge.json."""
    return dump_json({"version": 1, "entries": [_knowledge(record) for record in records]}, indent=2)


def _knowledge(record: KnowledgeRecord) -> dict[str, Any]:
    values = {
        "id": record.content_id,
        "category": record.category,
        "content": record.content,
        "source": record.source,
        "tags": record.tags,
        "created_at": _seconds(record.created_at),
        "accessed_at": _seconds(record.accessed_at),
        "access_count": record.access_count,
    }
    found: dict[str, Any] = respelled(values | record.extra, record.extra)
    return found


def cache_json(records: Iterable[CachedResponseRecord]) -> str:
    """Return Grip's state/semantic_cache.json."""
    return dump_json({record.key: _cached(record) for record in records})


def _cached(record: CachedResponseRecord) -> dict[str, Any]:
    values = {
        "response": record.response,
        "model": record.model,
        "created_at": _seconds(record.created_at),
        "accessed_at": _seconds(record.accessed_at),
        "message_preview": record.preview,
    }
    found: dict[str, Any] = respelled(values | record.extra, record.extra)
    return found


def key_values_json(records: Iterable[KeyValueRecord]) -> str:
    """Return grid's kv.json: sorted keys, two spaces of indent, Go's escapes, no final line break."""
    ordered = sorted(records, key=lambda record: record.key.encode())
    lines = [
        f"  {_go_string(record.key)}: {record.value if record.is_json else _go_string(record.value)}"
        for record in ordered
    ]
    return "{\n" + ",\n".join(lines) + "\n}" if lines else "{}"


def _go_string(text: str) -> str:
    """Return a JSON string with the escapes of Go's encoder."""
    quoted = json.dumps(text, ensure_ascii=False)
    for character, escape in _ESCAPES.items():
        quoted = quoted.replace(character, escape)
    return quoted


def observations_json(records: Iterable[ObservationRecord]) -> str:
    """Return observations as an export file that MemoryHub can read."""
    rows = []
    for record in records:
        row = {
            "category": record.category,
            "content": record.content,
            "created_at": record.occurred_at_text or _zulu(record.occurred_at),
            "id": record.uid,
            "source": record.source,
        }
        rows.append(respelled(row | record.extra, record.extra))
    return dump_json(rows, indent=2) + "\n"


def _seconds(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None


def _zulu(moment: datetime | None) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else ""
