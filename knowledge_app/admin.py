"""The admin site: what was learnt, to be looked at. Curating goes through the services, so that it can be undone."""

from __future__ import annotations

from django.contrib import admin

from knowledge_app.models import (
    CachedResponse,
    HeldChange,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    MemoryDocument,
    MemoryRevision,
    Observation,
    Term,
)
from sessions_app.admin import ReadOnlyAdmin


@admin.register(MemoryDocument, Term, CachedResponse)
class PlainAdmin(ReadOnlyAdmin):
    list_display = ["id", "__str__", "workspace"]
    list_select_related = ["workspace"]


@admin.register(MemoryRevision)
class MemoryRevisionAdmin(ReadOnlyAdmin):
    list_display = ["document", "number", "author_name", "reason", "created_at"]
    list_select_related = ["document"]


@admin.register(HeldChange)
class HeldChangeAdmin(ReadOnlyAdmin):
    list_display = ["id", "document", "status", "reason", "created_at"]
    list_filter = ["status"]
    list_select_related = ["document"]


@admin.register(HistoryEntry)
class HistoryEntryAdmin(ReadOnlyAdmin):
    list_display = ["position", "workspace", "occurred_at", "__str__"]
    list_filter = ["workspace", "is_archived"]
    list_select_related = ["workspace"]
    search_fields = ["content"]


@admin.register(KnowledgeEntry, Observation)
class CategoryAdmin(ReadOnlyAdmin):
    list_display = ["id", "workspace", "category", "__str__", "source"]
    list_filter = ["category", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["content", "source"]


@admin.register(KeyValue)
class KeyValueAdmin(ReadOnlyAdmin):
    """Without the value: secrets are revealed on the hub's own page, which says so in the audit trail."""

    list_display = ["key", "workspace", "updated_at"]
    list_select_related = ["workspace"]
    search_fields = ["key"]
    exclude = ["value"]
