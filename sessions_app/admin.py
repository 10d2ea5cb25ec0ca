"""The admin site: for people and their roles, workspace settings, and a look at raw rows."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from sessions_app.models import AuditRecord, Entry, ImportReport, Membership, Run, Session, Summary, Workspace


class ReadOnlyAdmin(admin.ModelAdmin[Model]):
    """Rows that services alone write: to be looked at."""

    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False


class MembershipInline(admin.TabularInline[Membership, Workspace]):
    model = Membership
    extra = 0
    autocomplete_fields = ["user"]


@admin.register(Workspace)
class WorkspaceAdmin(admin.ModelAdmin[Workspace]):
    list_display = ["name", "slug", "layout", "updated_at"]
    list_filter = ["layout"]
    search_fields = ["name", "slug", "path"]
    readonly_fields = ["slug", "path", "layout", "layout_version", "unavailable_since", "created_at", "updated_at"]
    inlines = [MembershipInline]

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Workspace | None = None) -> bool:  # noqa: ARG002
        return False


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    list_display = ["key", "workspace", "epoch", "last_consolidated", "entry_count", "total_tokens", "updated_at"]
    list_filter = ["workspace", "is_visible_to_agent"]
    list_select_related = ["workspace"]
    search_fields = ["key", "title"]


@admin.register(Entry)
class EntryAdmin(ReadOnlyAdmin):
    list_display = ["id", "session", "epoch", "position", "kind", "role", "token_count", "occurred_at"]
    list_filter = ["kind", "role"]
    list_select_related = ["session"]


@admin.register(Summary)
class SummaryAdmin(ReadOnlyAdmin):
    list_display = ["id", "session", "first_position", "last_position", "method", "token_count"]
    list_select_related = ["session"]


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = ["id", "workspace", "session", "kind", "status", "origin", "from_position", "to_position"]
    list_filter = ["kind", "status", "origin"]
    list_select_related = ["workspace", "session"]


@admin.register(ImportReport)
class ImportReportAdmin(ReadOnlyAdmin):
    list_display = ["id", "workspace", "path", "status", "problem_count", "created_at"]
    list_filter = ["status"]
    list_select_related = ["workspace"]


@admin.register(AuditRecord)
class AuditRecordAdmin(ReadOnlyAdmin):
    list_display = ["at", "actor_name", "action", "text"]
    list_filter = ["action", "actor_kind"]
    search_fields = ["text", "actor_name"]
