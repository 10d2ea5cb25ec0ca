from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import groupby

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from knowledge_app.forms import HistoryFilterForm
from knowledge_app.models import HistoryEntry
from knowledge_app.services.history import add_note
from knowledge_app.views.extra import Fields, with_further_fields
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pages import keyset_page, number_of
from sessions_app.access import get_workspace, has_role, note_page, person
from sessions_app.models import Membership
from sessions_app.services.accesses import seen_rows

MAX_NOTE = 4_000  # characters


def history(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    form = HistoryFilterForm(request.GET)
    wishes = form.cleaned_data if form.is_valid() else {}
    entries = HistoryEntry.objects.filter(workspace=workspace).select_related("session")
    if text := wishes.get("q"):
        entries = entries.filter(content__icontains=text)
    if kept := wishes.get("kept"):
        entries = entries.filter(is_archived=kept == "archive")
    session = number_of(request.GET.get("session"))
    if session is not None:
        entries = entries.filter(session=session)
    page = keyset_page(entries, order=("-position",), params=request.GET)
    note_page(request, workspace, "history.read", seen_rows("history", [row.pk for row in page.rows]))
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "days": _by_day(page.rows),
        "count": entries.count(),
        "is_filtered": any(wishes.values()) or session is not None,
        "may_edit": has_role(request.user, workspace, Membership.Role.EDITOR),
    }
    return render_page(request, "knowledge_app/history.html", context, fragment="history-list")


@require_POST
def note_history(request: HttpRequest, slug: str) -> HttpResponse:
    """Add a person's note to the history."""
    workspace = get_workspace(request, slug, role=Membership.Role.EDITOR)
    text = request.POST.get("text", "").strip()[:MAX_NOTE]
    if text:
        add_note(workspace, text, actor=person(request), now=timezone.now())
    return redirect("knowledge:history", slug)


def _by_day(entries: Sequence[HistoryEntry]) -> list[tuple[date | None, list[tuple[HistoryEntry, Fields]]]]:
    """Set neighbours of one day together. The order is that of writing: a day may come twice."""

    def day(entry: HistoryEntry) -> date | None:
        return timezone.localdate(entry.occurred_at) if entry.occurred_at else None

    return [(key, with_further_fields(group)) for key, group in groupby(entries, key=day)]
