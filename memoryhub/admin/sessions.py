"""Sessions, entries and summaries, read-only, with bulk compression, consolidation and export."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from memoryhub.admin.bulk_selection import chosen_rows, confirm
from memoryhub.admin.forms import ConfirmForm
from memoryhub.admin.read_only import ReadOnlyAdmin
from memoryhub.admin.tables import TableAdmin
from memoryhub.permissions import by_person, person
from sessions_app.models import AppendReceipt, DailyTotal, DeletedSession, Entry, Run, Session, Summary
from sessions_app.services.audit import By, record
from sessions_app.services.compressing.folding import archive_and_clear
from sessions_app.services.runs import request_run
from sessions_app.services.transfer import export_sessions

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MAX_SESSIONS = 500  # each run is its own transaction
IN_MEMORY = 10 * 2**20


def _compress(session: Session, by: By) -> Run:
    return request_run(session, Run.Kind.COMPRESSION, options={}, by=by)[0]


def _archive(session: Session, by: By) -> Run:
    return archive_and_clear(session, by=by)


def _consolidate(session: Session, by: By) -> Run:
    return request_run(session, Run.Kind.CONSOLIDATION, options={}, by=by)[0]


def _run_action(
    name: str, title: StrOrPromise, request_one: Callable[[Session, By], Run], help_text: StrOrPromise
) -> Any:
    """Return an admin action that requests a run for each selected session."""

    def act(options: Any, request: HttpRequest, queryset: QuerySet[Session]) -> HttpResponse | None:
        chosen = chosen_rows(queryset, limit=MAX_SESSIONS)
        answer = confirm(options, request, queryset, chosen, ConfirmForm, title=title, help_text=help_text)
        if isinstance(answer, HttpResponse):
            return answer
        for workspace, pks in chosen.by_workspace.items():
            sessions = Session.objects.filter(pk__in=pks).select_related("workspace").order_by("pk")
            runs = [request_one(session, by_person(request)) for session in sessions]
            url = reverse("runs", args=[workspace.slug])
            if len(runs) == 1:
                url = reverse("run", args=[workspace.slug, runs[0].pk])
            words = ngettext("%(count)s run requested.", "%(count)s runs requested.", len(runs))
            said = words % {"count": f"{len(runs):,}"}
            link = gettext("View progress")
            text = '{}: {} <a href="{}">{}</a>.'
            messages.info(request, format_html(text, workspace.name, said, url, link))
        return None

    act.__name__ = name
    return admin.action(description=title)(act)


@admin.action(description=_("Export as files, in a zip archive"))
def export_as_zip(_options: Any, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponseBase:
    chosen = chosen_rows(queryset, limit=MAX_SESSIONS)
    out = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  the response closes it
    pks = [pk for some in chosen.by_workspace.values() for pk in some]
    sessions = Session.objects.filter(pk__in=pks).select_related("workspace").order_by("workspace_id", "pk")
    export_sessions(sessions.iterator(chunk_size=50), out)
    out.seek(0)
    now = timezone.now()
    for workspace, some in chosen.by_workspace.items():
        text = f"{len(some):,} session{'' if len(some) == 1 else 's'} exported"
        record(By(person(request), now), "sessions.exported", "workspace", workspace.pk, text, workspace=workspace)
    return FileResponse(out, as_attachment=True, filename=f"sessions-{now:%Y-%m-%d}.zip")


@admin.register(Session)
class SessionAdmin(TableAdmin):
    table = "sessions"
    list_display = [
        "key", "workspace", "title", "epoch", "last_consolidated", "entry_count", "active_entry_count",
        "total_tokens", "active_tokens", "updated_at",
    ]  # fmt: skip
    list_filter = ["is_visible_to_agent", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["key", "title"]
    date_hierarchy = "updated_at"
    actions = [
        _run_action(
            "compress", _("Summarise old messages"), _compress,
            _("Messages older than the recent window are summarised. They are kept, and each run can be undone."),
        ),
        _run_action(
            "consolidate", _("Consolidate into memory"), _consolidate,
            _("New messages become facts in MEMORY.md and a history entry. Each run can be undone."),
        ),
        _run_action(
            "archive", _("Consolidate everything and clear"), _archive,
            _(
                "All messages of each session become facts and a history entry. Then the session is cleared. "
                "Its messages stay readable in the earlier part."
            ),
        ),
        export_as_zip,
    ]  # fmt: skip


@admin.register(Entry)
class EntryAdmin(TableAdmin):
    table = "entries"
    list_display = ["id", "workspace", "session", "epoch", "position", "kind", "role", "token_count", "occurred_at"]
    list_filter = ["kind", "role", ("summary", admin.EmptyFieldListFilter), "workspace"]
    list_select_related = ["workspace", "session"]
    search_fields = ["session__key", "content"]
    date_hierarchy = "recorded_at"


@admin.register(Summary)
class SummaryAdmin(ReadOnlyAdmin):
    list_display = ["id", "workspace", "session", "first_position", "last_position", "method", "model", "token_count"]
    list_filter = ["method", "workspace"]
    list_select_related = ["workspace", "session"]
    search_fields = ["session__key", "content"]
    date_hierarchy = "created_at"


@admin.register(AppendReceipt)
class AppendReceiptAdmin(ReadOnlyAdmin):
    list_display = ["idempotency_key", "session", "epoch", "first_position", "entry_count", "created_at"]
    list_filter = ["session__workspace"]
    list_select_related = ["session"]
    search_fields = ["idempotency_key", "session__key"]


@admin.register(DeletedSession)
class DeletedSessionAdmin(ReadOnlyAdmin):
    list_display = ["key", "workspace", "entry_count", "total_tokens", "is_forgotten", "deleted_by", "deleted_at"]
    list_filter = ["is_forgotten", "workspace"]
    list_select_related = ["workspace"]
    search_fields = ["key", "reason", "deleted_by"]
    date_hierarchy = "deleted_at"


@admin.register(DailyTotal)
class DailyTotalAdmin(ReadOnlyAdmin):
    list_display = ["day", "workspace", "session", "kind", "entry_count", "token_count", "active_token_count"]
    list_filter = ["kind", ("session", admin.EmptyFieldListFilter), "workspace"]
    list_select_related = ["workspace", "session"]
    search_fields = ["session__key"]
    date_hierarchy = "day"
