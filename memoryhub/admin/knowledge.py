"""Curated rows: filters, search, bulk edits, import and export of tables."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.text import smart_split, unescape_string_literal
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import CachedResponse, Fact, HistoryEntry, KeyValue, KnowledgeEntry, Observation
from memoryhub.admin.edits import edit_action, merge_knowledge
from memoryhub.admin.forms import EditForm, MoveForm, RecategoriseForm, TagForm, WithdrawForm
from memoryhub.admin.read_only import ReadOnlyAdmin
from memoryhub.admin.tables import TableAdmin
from memoryhub.lib.database.any_case import any_case

IN_USE = ("withdrawn_at", admin.EmptyFieldListFilter)


def _usual_actions(table: str) -> list[Any]:
    return [
        edit_action(
            "withdraw",
            _("Withdraw"),
            table=table,
            change="withdraw",
            form=WithdrawForm,
            help_text=_("Withdrawn rows stay readable, but agents no longer get them."),
        ),
        edit_action("take_back", _("Restore"), table=table, change="return"),
    ]


@admin.register(KnowledgeEntry)
class KnowledgeEntryAdmin(TableAdmin):
    table = "knowledge"
    list_display = ["__str__", "workspace", "category", "source", "tag_list", "access_count", "withdrawn_at"]
    list_filter = ["category", IN_USE, ("last_verified_at", admin.EmptyFieldListFilter), "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["content", "source", "tags", "content_id", "identity"]
    date_hierarchy = "updated_at"
    actions = [
        edit_action(
            "recategorise",
            _("Re-categorise"),
            table="knowledge",
            change="recategorise",
            form=RecategoriseForm,
            help_text=_("Imports don't change the new category."),
        ),
        edit_action("tag", _("Add or remove tags"), table="knowledge", change="tag", form=TagForm),
        merge_knowledge,
        *_usual_actions("knowledge"),
        edit_action("verify", _("Mark as verified"), table="knowledge", change="verify"),
    ]

    @admin.display(description=_("Tags"))
    def tag_list(self, row: KnowledgeEntry) -> str:
        return ", ".join(map(str, row.tags))


@admin.register(Observation)
class ObservationAdmin(TableAdmin):
    table = "observations"
    list_display = ["__str__", "workspace", "category", "source", "occurred_at", "withdrawn_at", "last_verified_at"]
    list_filter = ["category", IN_USE, ("last_verified_at", admin.EmptyFieldListFilter), "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["content", "source", "uid"]
    date_hierarchy = "recorded_at"
    actions = [
        edit_action("move", _("Move to another kind"), table="observations", change="assign", form=MoveForm),
        *_usual_actions("observations"),
        edit_action("verify", _("Mark as verified"), table="observations", change="verify"),
    ]


@admin.register(KeyValue)
class KeyValueAdmin(TableAdmin):
    """Secrets are neither shown nor searched here. The hub's own page reveals them and records who looked."""

    table = "key_values"
    list_display = ["key", "workspace", "shown_value", "is_secret", "withdrawn_at", "updated_at"]
    list_filter = ["is_secret", "is_json", IN_USE, "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["key"]
    search_help_text = _("Searches keys, and values that aren't secret.")
    date_hierarchy = "updated_at"
    hidden = ("value", "corrected")
    readonly_fields = ["shown_value"]
    actions = _usual_actions("key_values")

    @admin.display(description=_("Value"))
    def shown_value(self, row: KeyValue) -> str:
        return gettext("(hidden)") if row.is_secret else row.value[:200]

    def get_search_results(
        self, _request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        for bit in smart_split(search_term):
            word = unescape_string_literal(bit) if bit.startswith(('"', "'")) and bit[0] == bit[-1] else bit
            queryset = queryset.filter(
                any_case("key__icontains", word) | (Q(is_secret=False) & any_case("value__icontains", word))
            )
        return queryset, False


@admin.register(CachedResponse)
class CachedResponseAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "workspace", "model", "hit_count", "created_at", "accessed_at"]
    list_filter = ["model", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["preview", "response", "key", "model"]
    date_hierarchy = "created_at"
    actions = [
        edit_action(
            "invalidate",
            _("Invalidate"),
            table="cached",
            change="remove",
            form=EditForm,
            help_text=_("The agent asks its model again."),
        )
    ]


@admin.register(Fact)
class FactAdmin(TableAdmin):
    table = "facts"
    list_display = ["text", "document", "workspace", "section", "category", "pinned", "line", "born", "died"]
    list_filter = ["pinned", ("died", admin.EmptyFieldListFilter), "workspace"]
    list_select_related = ["document", "workspace", "born", "died"]
    search_fields = ["text", "section", "category"]


@admin.register(HistoryEntry)
class HistoryEntryAdmin(TableAdmin):
    table = "history"
    list_display = ["position", "workspace", "occurred_at", "__str__", "source", "is_archived"]
    list_filter = ["is_archived", IN_USE, "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["content", "source"]
    date_hierarchy = "recorded_at"
