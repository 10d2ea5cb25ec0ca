"""Memory documents, held changes, erasures and the graph, read-only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import (
    Concern,
    Confirmation,
    EditedRow,
    FactSource,
    Forgotten,
    GraphLayout,
    HeldChange,
    HeldRow,
    HygieneScore,
    KeyValue,
    KnowledgeEntry,
    MemoryDocument,
    MemoryRevision,
    Observation,
    RowVector,
    SemanticGraph,
    Term,
    TermRelation,
)
from memoryhub.admin.read_only import ReadOnlyAdmin


@admin.register(MemoryDocument)
class MemoryDocumentAdmin(ReadOnlyAdmin):
    list_display = ["name", "workspace", "head", "synced_revision", "updated_at"]
    list_filter = ["name", "workspace"]
    list_select_related = ["workspace", "head", "synced_revision"]
    search_fields = ["name", "path"]


@admin.register(MemoryRevision)
class MemoryRevisionAdmin(ReadOnlyAdmin):
    list_display = ["document", "number", "author_kind", "author_name", "reason", "created_at"]
    list_filter = ["author_kind", "document__workspace"]
    list_select_related = ["document"]
    search_fields = ["author_name", "reason", "content"]
    date_hierarchy = "created_at"


@admin.register(FactSource)
class FactSourceAdmin(ReadOnlyAdmin):
    list_display = ["id", "fact", "run", "entry"]
    list_select_related = ["fact", "run", "entry"]
    search_fields = ["fact__text"]


@admin.register(HeldChange)
class HeldChangeAdmin(ReadOnlyAdmin):
    list_display = ["id", "title", "workspace", "decision", "author_name", "decided_by", "created_at"]
    list_filter = ["status", "workspace"]
    list_select_related = ["workspace", "document", "decided_by"]
    search_fields = ["reason", "author_name", "proposed"]
    date_hierarchy = "created_at"


@admin.register(HeldRow)
class HeldRowAdmin(ReadOnlyAdmin):
    list_display = ["id", "workspace", "row", "author_name", "created_at"]
    list_filter = ["workspace"]
    list_select_related = ["workspace", "knowledge", "observation", "key_value", "history_entry"]
    search_fields = ["author_name"]
    date_hierarchy = "created_at"


@admin.register(SemanticGraph)
class SemanticGraphAdmin(ReadOnlyAdmin):
    list_display = ["workspace", "provider", "model", "dimensions", "built_at"]
    list_filter = ["provider"]
    list_select_related = ["workspace"]
    search_fields = ["model"]


@admin.register(Term)
class TermAdmin(ReadOnlyAdmin):
    list_display = ["text", "workspace", "fingerprint", "created_at"]
    list_filter = ["workspace"]
    list_select_related = ["workspace"]
    search_fields = ["text"]


@admin.register(TermRelation)
class TermRelationAdmin(ReadOnlyAdmin):
    list_display = ["term", "related", "rank", "cosine", "pinned", "is_removed"]
    list_filter = ["pinned", "is_removed", "term__workspace"]
    list_select_related = ["term", "related"]
    search_fields = ["term__text", "related__text"]


@admin.register(RowVector)
class RowVectorAdmin(ReadOnlyAdmin):
    list_display = ["id", "workspace", "kind", "object_id", "fingerprint"]
    list_filter = ["kind", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["fingerprint"]


@admin.register(GraphLayout)
class GraphLayoutAdmin(ReadOnlyAdmin):
    """Without the graph itself, which its page shows."""

    list_display = ["workspace", "revision", "message_count", "built_at"]
    list_select_related = ["workspace"]
    hidden = ("data",)


@admin.register(EditedRow)
class EditedRowAdmin(ReadOnlyAdmin):
    """Without the states of key-values, which their own history in the hub shows."""

    list_display = ["id", "run", "table", "object_id"]
    list_filter = ["table"]
    list_select_related = ["run"]
    hidden = ("before", "after")
    readonly_fields = ["was", "became"]

    @admin.display(description=_("Before"))
    def was(self, row: EditedRow) -> Any:
        return row.before if row.table != "key_values" else gettext("not shown here")

    @admin.display(description=_("After"))
    def became(self, row: EditedRow) -> Any:
        return row.after if row.table != "key_values" else gettext("not shown here")


@admin.register(Concern)
class ConcernAdmin(ReadOnlyAdmin):
    list_display = ["what", "workspace", "kind", "status", "table", "object_id", "weight", "found_at"]
    list_filter = ["kind", "status", "table", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["what"]
    date_hierarchy = "found_at"


@admin.register(HygieneScore)
class HygieneScoreAdmin(ReadOnlyAdmin):
    list_display = ["id", "workspace", "score", "row_count", "at"]
    list_filter = ["workspace"]
    list_select_related = ["workspace"]


@admin.register(Forgotten)
class ForgottenAdmin(ReadOnlyAdmin):
    """Without the digests."""

    list_display = ["id", "workspace", "kind", "forgotten_by", "forgotten_at", "lifted_at"]
    list_filter = ["kind", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["reason", "forgotten_by"]
    hidden = ("digests",)


@admin.register(Confirmation)
class ConfirmationAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "workspace", "category", "observation", "similarity", "status", "decided_by"]
    list_filter = ["status", "category", "workspace"]
    list_select_related = ["workspace", "observation"]
    search_fields = ["content", "source"]
    date_hierarchy = "created_at"


@admin.register(KnowledgeEntry.history.model, Observation.history.model)
class EarlierStateAdmin(ReadOnlyAdmin):
    list_display = ["history_id", "history_date", "id", "workspace", "category", "text", "history_change_reason"]
    list_filter = ["history_type", "category", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["content", "history_change_reason"]
    date_hierarchy = "history_date"

    @admin.display(description=_("Content"))
    def text(self, state: Any) -> str:
        return str(state.content[:80])


@admin.register(KeyValue.history.model)
class EarlierKeyValueAdmin(ReadOnlyAdmin):
    """Without values, which may be secret."""

    list_display = ["history_id", "history_date", "id", "workspace", "key", "history_change_reason"]
    list_filter = ["history_type", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["key", "history_change_reason"]
    date_hierarchy = "history_date"
    hidden = ("value", "corrected")
