"""Rows of agents that the content check flagged: in the review inbox, approve and remove."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from knowledge_app.models import HeldRow, HistoryEntry, KeyValue
from knowledge_app.services.rows.held_row_decisions import approve_row, remove_row, remove_rows
from memoryhub.edit_responses import add_edit_message
from memoryhub.lib.content_check.hidden_content import show_invisible
from memoryhub.lib.errors import Conflict, MemoryHubError
from memoryhub.lib.http.pagination import parse_int
from memoryhub.permissions import EDITOR, by_person, get_workspace, log_page_access
from memoryhub.runs.part_decisions import undo_approval_url
from sessions_app.services.access_log import seen_rows

SHOWN_CHARS = 1_000
KINDS = {  # by link: label, URL name, and table and action in the access log
    "knowledge": (_("Knowledge entry"), "knowledge:knowledge-entry", "knowledge", "knowledge.read"),
    "observation": (_("Observation"), "knowledge:observation", "observations", "observations.read"),
    "key_value": (_("Key-value"), "knowledge:key-value", "key_values", "key_value.read"),
    "history_entry": (_("History entry"), "", "history", "history.read"),
}


def held_row_context(request: HttpRequest, held: HeldRow) -> dict[str, Any]:
    """Return a held row with its label, address and text, and log that it was read."""
    link = next(name for name in KINDS if getattr(held, f"{name}_id"))
    label, name, table, action = KINDS[link]
    log_page_access(request, held.workspace, action, seen_rows(table, [held.row.pk]))
    url = reverse(name, args=[held.workspace.slug, held.row.pk]) if name else ""
    return {"held": held, "held_label": label, "held_url": url, "held_text": _text(held)}


def _additions(slug: str) -> str:
    return f"{reverse('inbox', args=[slug])}?kind=addition"


def _text(held: HeldRow) -> str:
    row = held.row
    if isinstance(row, KeyValue):
        text = f"{row.key} = {'••••' if row.is_secret else row.value}"
    else:
        fields = {finding["field"] for finding in held.findings} - {"content"}
        more = [] if isinstance(row, HistoryEntry) else [row.source] if "source" in fields else []
        text = "\n".join([row.content, *more, *(getattr(row, "tags", []) if "tags" in fields else [])])
    return show_invisible(text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…")


@require_POST
def approve_held_row(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Release a held row, so that agents get it."""
    try:
        approval = approve_row(_find(request, slug, pk), seen=request.POST.get("seen", ""), by=by_person(request))
    except MemoryHubError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, gettext("Approved. Agents can use it now."), extra_tags=undo_approval_url(approval))
    return redirect(_additions(slug))


@require_POST
def remove_held_row(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Withdraw a held row."""
    try:
        run = remove_row(_find(request, slug, pk), by=by_person(request))
    except MemoryHubError as error:
        messages.error(request, error.message)
    else:
        if run is None:
            messages.success(request, gettext("History entry withdrawn."))
        else:
            add_edit_message(request, run)
    return redirect(_additions(slug))


@require_POST
def remove_held_rows(request: HttpRequest, slug: str) -> HttpResponse:
    """Withdraw all held rows that the person has been shown or could have been."""
    workspace = get_workspace(request, slug, role=EDITOR)
    count = remove_rows(workspace, up_to=parse_int(request.POST.get("up_to")) or 0, by=by_person(request))
    text = ngettext("%(count)s flagged addition removed.", "%(count)s flagged additions removed.", count)
    messages.success(request, text % {"count": f"{count:,}"})
    return redirect(_additions(slug))


def _find(request: HttpRequest, slug: str, pk: int) -> HeldRow:
    """Return a held row. Raises Http404 for the workspace, and Conflict for the row: approved ones aren't held."""
    workspace = get_workspace(request, slug, role=EDITOR)
    found = HeldRow.objects.select_related("workspace").filter(workspace=workspace, pk=pk).first()
    if found is None:
        raise Conflict(gettext("This has been decided already."), code="already_decided")
    return found
