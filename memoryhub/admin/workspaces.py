"""Workspaces, their people, the audit log and access log, imports, and the hub's own rows."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext

from memoryhub.admin.read_only import ReadOnlyAdmin
from memoryhub.models import (
    AccessedRow,
    AccessRecord,
    ApiToken,
    FailedAttempts,
    IdempotentCall,
    Invitation,
    InvitedRole,
    Job,
    OAuthClient,
    OAuthConnection,
    Preferences,
    Process,
    ReadGrant,
    RecentSearch,
    SavedSearch,
    SetupToken,
    SignIn,
    StoredSetting,
)
from memoryhub.permissions import by_person
from sessions_app.models import (
    AuditRecord,
    AuditSeal,
    ImportProblem,
    ImportReport,
    IndexGuard,
    Membership,
    MutationGuard,
    Run,
    SourceFile,
    SourceFolder,
    SyncState,
    Webhook,
    WebhookDelivery,
    Workspace,
)
from sessions_app.services.audit import record


class MembershipInline(admin.TabularInline[Membership, Workspace]):
    model = Membership
    extra = 0
    autocomplete_fields = ["user"]


@admin.register(Workspace)
class WorkspaceAdmin(admin.ModelAdmin[Workspace]):
    list_display = ["name", "slug", "layout", "auto_compress", "auto_consolidate", "updated_at"]
    list_filter = ["layout", "auto_compress", "auto_consolidate"]
    search_fields = ["name", "slug", "path"]
    ordering = ["name", "id"]  # also of the autocomplete's pages
    show_full_result_count = False
    readonly_fields = ["slug", "path", "layout", "layout_version", "unavailable_since", "created_at", "updated_at"]
    inlines = [MembershipInline]

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Workspace | None = None) -> bool:  # noqa: ARG002
        return False

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:  # noqa: FBT001
        super().save_model(request, obj, form, change)
        if form.changed_data:
            changed = {name: [form.initial.get(name), form.cleaned_data[name]] for name in form.changed_data}
            text = f"Settings changed: {', '.join(name.replace('_', ' ') for name in changed)}"
            by, detail = by_person(request), {"changed": changed}
            record(by, "workspace.configured", "workspace", obj.pk, text, workspace=obj, detail=detail)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:  # noqa: FBT001
        super().save_formset(request, form, formset, change)
        for membership in formset.new_objects:
            _record_role(request, membership, membership.role, "")
        for membership, _fields in formset.changed_objects:
            _record_role(request, membership, membership.role, None)
        for membership in formset.deleted_objects:
            _record_role(request, membership, "", membership.role)


def _record_role(request: HttpRequest, membership: Membership, role: str, was: str | None) -> None:
    """Write the audit record of a role. ``was``: None if it isn't known."""
    name = membership.user.username
    record(
        by_person(request),
        "person.role_changed" if role else "person.removed",
        "user",
        membership.user_id,
        f"{name} is now {role}" if role else f"{name} has no access any more",
        workspace=membership.workspace,
        detail={"role": role} if was is None else {"role": role, "was": was},
    )


@admin.register(Membership)
class MembershipAdmin(admin.ModelAdmin[Membership]):
    list_display = ["user", "workspace", "role"]
    list_filter = ["role", "workspace"]
    list_select_related = ["user", "workspace"]
    search_fields = ["user__username", "workspace__name", "workspace__slug"]
    autocomplete_fields = ["user", "workspace"]
    show_full_result_count = False
    actions = None  # delete roles one by one, or on the page People

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:  # noqa: FBT001
        super().save_model(request, obj, form, change)
        if form.changed_data:
            _record_role(request, obj, obj.role, form.initial.get("role", "") if change else "")

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        _record_role(request, obj, "", obj.role)
        super().delete_model(request, obj)


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Without the values that an edit sets in key-values."""

    list_display = ["id", "page", "workspace", "session", "kind", "status", "origin", "requested_by", "created_at"]
    list_filter = ["kind", "status", "origin", "workspace"]
    list_select_related = ["workspace", "session"]
    search_fields = ["requested_by", "session__key", "error"]
    date_hierarchy = "created_at"
    hidden = ("options",)
    readonly_fields = ["wishes"]

    @admin.display(description=_("In the hub"))
    def page(self, run: Run) -> str:
        url = reverse("run", args=[run.workspace.slug, run.pk])
        return format_html('<a href="{}">{}</a>', url, pgettext("link", "Open"))

    @admin.display(description=_("Options"))
    def wishes(self, run: Run) -> dict[str, object]:
        unfit = ("units", "values") if run.options.get("table") == "key_values" else ("units",)
        return {name: value for name, value in run.options.items() if name not in unfit}


@admin.register(SourceFile)
class SourceFileAdmin(ReadOnlyAdmin):
    list_display = ["path", "workspace", "kind", "status", "session", "size", "last_seen_at"]
    list_filter = ["kind", "status", "workspace"]
    list_select_related = ["workspace", "session"]
    search_fields = ["path"]


@admin.register(SourceFolder)
class SourceFolderAdmin(ReadOnlyAdmin):
    list_display = ["label", "workspace", "path", "project", "layout", "is_followed", "succeeded_at", "error_code"]
    list_filter = ["layout", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["label", "path", "error"]


@admin.register(SyncState)
class SyncStateAdmin(ReadOnlyAdmin):
    list_display = ["workspace", "succeeded_at", "changed_at", "lag_seconds", "failed_at", "error_code"]
    list_select_related = ["workspace"]
    search_fields = ["workspace__name", "error"]


@admin.register(ImportReport)
class ImportReportAdmin(ReadOnlyAdmin):
    list_display = ["id", "workspace", "path", "status", "problem_count", "requested_by", "created_at"]
    list_filter = ["status", "layout", "workspace"]
    list_select_related = ["workspace", "requested_by"]
    search_fields = ["path", "name", "error"]
    date_hierarchy = "created_at"


@admin.register(ImportProblem)
class ImportProblemAdmin(ReadOnlyAdmin):
    list_display = ["id", "report", "file", "line", "outcome", "what", "action"]
    list_filter = ["outcome"]
    list_select_related = ["report"]
    search_fields = ["file", "what"]
    hidden = ("raw",)


@admin.register(AuditRecord)
class AuditRecordAdmin(ReadOnlyAdmin):
    list_display = ["at", "workspace", "actor_kind", "actor_name", "action", "text"]
    list_filter = ["actor_kind", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["text", "actor_name", "action"]
    date_hierarchy = "at"


@admin.register(MutationGuard)
class MutationGuardAdmin(ReadOnlyAdmin):
    list_display = ["id", "reason", "opened_at"]
    search_fields = ["reason"]


@admin.register(IndexGuard)
class IndexGuardAdmin(ReadOnlyAdmin):
    list_display = ["id", "indexed_table"]
    search_fields = ["indexed_table"]


@admin.register(SavedSearch)
class SavedSearchAdmin(ReadOnlyAdmin):
    list_display = ["id", "name", "user", "workspace", "query", "is_shared", "seen_at"]
    list_filter = ["is_shared", "workspace"]
    list_select_related = ["user", "workspace"]
    search_fields = ["name", "query"]


@admin.register(RecentSearch)
class RecentSearchAdmin(ReadOnlyAdmin):
    list_display = ["id", "user", "workspace", "query", "searched_at"]
    list_select_related = ["user", "workspace"]
    search_fields = ["query"]


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
    """Without the salt of its secret."""

    list_display = ["url", "workspace", "is_enabled", "created_by", "created_at"]
    list_filter = ["is_enabled", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["url", "created_by"]
    hidden = ("salt",)


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    list_display = ["id", "webhook", "record", "status", "attempt_count", "response_status", "sent_at"]
    list_filter = ["status"]
    list_select_related = ["webhook", "record"]
    search_fields = ["webhook__url", "error"]


@admin.register(SetupToken)
class SetupTokenAdmin(ReadOnlyAdmin):
    list_display = ["id", "expires_at", "used_at"]
    hidden = ("token_hash",)


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    list_display = ["id", "name", "created_by", "created_at", "expires_at", "used_by", "revoked_at"]
    search_fields = ["name", "created_by", "used_by"]
    hidden = ("token_hash",)


@admin.register(InvitedRole)
class InvitedRoleAdmin(ReadOnlyAdmin):
    list_display = ["id", "invitation", "workspace", "role"]
    list_select_related = ["invitation", "workspace"]


@admin.register(SignIn)
class SignInAdmin(ReadOnlyAdmin):
    """Without the session key, which would allow signing in as that person."""

    list_display = ["id", "user", "browser", "address", "created_at", "seen_at"]
    list_select_related = ["user"]
    search_fields = ["user__username", "browser", "address"]
    hidden = ("session_key",)


@admin.register(StoredSetting)
class StoredSettingAdmin(ReadOnlyAdmin):
    """Without values: the settings page shows them."""

    list_display = ["name", "updated_by", "updated_at"]
    search_fields = ["name"]
    hidden = ("value",)


@admin.register(AuditSeal)
class AuditSealAdmin(ReadOnlyAdmin):
    list_display = ["id", "record_count", "created_at"]


@admin.register(FailedAttempts)
class FailedAttemptsAdmin(ReadOnlyAdmin):
    list_display = ["id", "count", "expires_at"]


@admin.register(Preferences)
class PreferencesAdmin(ReadOnlyAdmin):
    list_display = ["user", "theme", "time_zone", "language"]
    list_select_related = ["user"]
    search_fields = ["user__username"]


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = ["id", "workspace", "kind", "status", "requested_by", "created_at", "finished_at"]
    list_filter = ["kind", "status", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["requested_by", "error"]


@admin.register(Process)
class ProcessAdmin(ReadOnlyAdmin):
    list_display = ["name", "kind", "host", "pid", "started_at", "seen_at"]
    list_filter = ["kind"]
    search_fields = ["name"]


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = ["name", "prefix", "workspace", "scopes", "created_by", "last_used_at", "expires_at", "revoked_at"]
    list_filter = ["workspace"]
    list_select_related = ["workspace"]
    search_fields = ["name", "prefix"]
    hidden = ("token_hash",)


@admin.register(ReadGrant)
class ReadGrantAdmin(ReadOnlyAdmin):
    list_display = ["id", "token", "workspace", "ended_at"]
    list_select_related = ["token", "workspace"]
    search_fields = ["token__name", "token__prefix"]


@admin.register(OAuthClient)
class OAuthClientAdmin(ReadOnlyAdmin):
    list_display = ["name", "client_id", "redirect_uris", "created_at"]
    search_fields = ["name", "client_id"]


@admin.register(OAuthConnection)
class OAuthConnectionAdmin(ReadOnlyAdmin):
    list_display = ["id", "client", "user", "token", "access_expires_at"]
    list_select_related = ["client", "user", "token"]
    search_fields = ["client__name", "user__username", "token__name"]
    hidden = ("code_hash", "code_challenge", "refresh_key", "refresh_hash")


@admin.register(IdempotentCall)
class IdempotentCallAdmin(ReadOnlyAdmin):
    list_display = ["id", "token", "idempotency_key", "status", "created_at"]
    list_select_related = ["token"]
    search_fields = ["idempotency_key"]
    hidden = ("answer",)


@admin.register(AccessRecord)
class AccessRecordAdmin(ReadOnlyAdmin):
    list_display = ["at", "workspace", "actor_kind", "actor_name", "via", "action", "row_count"]
    list_filter = ["actor_kind", "via", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["actor_name", "action"]
    date_hierarchy = "at"


@admin.register(AccessedRow)
class AccessedRowAdmin(ReadOnlyAdmin):
    list_display = ["id", "access", "table", "parent", "epoch", "first", "last"]
    list_select_related = ["access"]
