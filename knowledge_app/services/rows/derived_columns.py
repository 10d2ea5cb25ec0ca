"""Columns that are derived from others of the same row."""

from __future__ import annotations

from django.db.models import Model

from knowledge_app.models import KeyValue, KnowledgeEntry
from memoryhub.lib.layouts.grip import content_id
from memoryhub.lib.secrets import looks_secret


def derive(row: Model) -> list[str]:
    """Update a row's derived columns and return their names."""
    if isinstance(row, KnowledgeEntry):
        row.identity = content_id(row.category, row.content)
        return ["identity"]
    if isinstance(row, KeyValue):
        row.is_secret = looks_secret(row.key, row.value)
        return ["is_secret"]
    return []
