from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import groupby

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from knowledge_app.models import HistoryEntry
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.documents.forms import HistoryFilterForm
from memoryhub.edit_responses import EXPORT, answer_chosen, list_address
from memoryhub.lib.bulk_selection import Action, selected_keys
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.errors import Invalid
from memoryhub.lib.extra_fields import Fields, with_extra_fields
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page, parse_int
from memoryhub.permissions import by_person, get_workspace, has_role, log_page_access
from sessions_app.models import Membership, Run, Workspace
from sessions_app.services.access_log import seen_rows

EDITOR = Membership.Role.EDITOR
MAX_NOTE = 4_000  # characters
ACTIONS = (
    Action("archive", gettext_lazy("Archive")),
    Action("unarchive", gettext_lazy("Unarchive")),
    EXPORT,
)
HIDDEN = {"log": "unarchive", "archive": "archive"}  # by filter: the action that would change nothing


def history(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    form = HistoryFilterForm(request.GET)
    filters = form.cleaned_data if form.is_valid() else {}
    entries = _matching(workspace, request)
    page = keyset_page(entries.select_related("session", "hold"), order=("-position",), params=request.GET)
    log_page_access(request, workspace, "history.read", seen_rows("history", [row.pk for row in page.rows]))
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "days": _by_day(page.rows),
        "count": entries.count(),
        "is_filtered": any(filters.values()) or "session" in request.GET,
        "actions": [action for action in ACTIONS if action.name != HIDDEN.get(filters.get("kept", ""))],
        "may_edit": has_role(request.user, workspace, EDITOR),
    }
    return render_page(request, "documents/history.html", context, fragment="history-list")


def _matching(workspace: Workspace, request: HttpRequest) -> QuerySet[HistoryEntry]:
    """Return the entries that match the page's filters: its rows, and the scope of "all that match"."""
    form = HistoryFilterForm(request.GET)
    filters = form.cleaned_data if form.is_valid() else {}
    entries = HistoryEntry.objects.filter(workspace=workspace)
    if text := filters.get("q"):
        entries = entries.filter(any_case("content__icontains", text))
    if kept := filters.get("kept"):
        entries = entries.filter(is_archived=kept == "archive")
    session = parse_int(request.GET.get("session"))
    return entries if session is None else entries.filter(session=session)


@require_POST
def edit_history(request: HttpRequest, slug: str) -> HttpResponse:
    """Archive, unarchive or export the selected entries."""
    workspace = get_workspace(request, slug, role=EDITOR)
    entries = _matching(workspace, request)
    return answer_chosen(
        request,
        workspace,
        "history",
        list_address(request, slug, "documents:history"),
        logged_as="history.exported",
        chosen=lambda: selected_keys(request, entries),
        edit=lambda pks: (_edit(request, workspace, pks), ""),
    )


def _edit(request: HttpRequest, workspace: Workspace, pks: list[int]) -> Run:
    action = request.POST.get("action", "")
    if action not in ("archive", "unarchive"):
        raise Invalid(_("Choose an action."), code="nothing_chosen")
    return edit_rows(workspace, "history", action, pks, by=by_person(request))


@require_POST
def note_history(request: HttpRequest, slug: str) -> HttpResponse:
    """Add a person's note to the history."""
    workspace = get_workspace(request, slug, role=Membership.Role.EDITOR)
    text = request.POST.get("text", "").strip()[:MAX_NOTE]
    if text:
        add_note(workspace, text, by=by_person(request))
        messages.success(request, _("Note added."))
    return redirect("documents:history", slug)


def _by_day(entries: Sequence[HistoryEntry]) -> list[tuple[date | None, list[tuple[HistoryEntry, Fields]]]]:
    """Group consecutive entries by day. Entries are in order of arrival, so a day can occur twice."""

    def day(entry: HistoryEntry) -> date | None:
        return timezone.localdate(entry.occurred_at) if entry.occurred_at else None

    return [(key, with_extra_fields(group)) for key, group in groupby(entries, key=day)]
