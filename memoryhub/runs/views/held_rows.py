"""Rows of agents that the content check flagged: in the review inbox, approve and remove."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from knowledge_app.models import HeldRow, HistoryEntry, KeyValue
from knowledge_app.services.rows.held_row_decisions import approve_row, remove_row, remove_rows
from memoryhub.edit_responses import add_edit_message
from memoryhub.lib.content_check.reach import show_invisible
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.pagination import parse_int
from memoryhub.permissions import EDITOR, by_person, get_workspace, log_page_access
from sessions_app.models import Workspace
from sessions_app.services.access_log import seen_rows

SHOWN = 50  # rows in the inbox, the latest first
SHOWN_CHARS = 1_000
KINDS = {  # by link: label, URL name, and table and action in the access log
    "knowledge": (_("Knowledge entry"), "knowledge:knowledge-entry", "knowledge", "knowledge.read"),
    "observation": (_("Observation"), "knowledge:observation", "observations", "observations.read"),
    "key_value": (_("Key-value"), "knowledge:key-value", "key_values", "key_value.read"),
    "history_entry": (_("History entry"), "", "history", "history.read"),
}


def held_rows(request: HttpRequest, workspace: Workspace) -> list[dict[str, Any]]:
    """Return the latest held rows with label, address, text and findings, and log what is shown."""
    rows = HeldRow.objects.filter(workspace=workspace).waiting().select_related(*KINDS).order_by("-id")
    shown: dict[str, list[int]] = {link: [] for link in KINDS}
    items = []
    for held in rows[:SHOWN]:
        link = next(name for name in KINDS if getattr(held, f"{name}_id"))
        label, name, _table, _action = KINDS[link]
        address = reverse(name, args=[workspace.slug, held.row.pk]) if name else ""
        items.append({"held": held, "label": label, "url": address, "text": _text(held)})
        shown[link].append(held.row.pk)
    for link, pks in shown.items():
        if pks:
            _label, _name, table, action = KINDS[link]
            log_page_access(request, workspace, action, seen_rows(table, pks))
    return items


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
    held = _find(request, slug, pk)
    try:
        approve_row(held, by=by_person(request))
    except MemoryHubError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, gettext("Approved. Agents can use it now."))
    return redirect("review", slug)


@require_POST
def remove_held_row(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Withdraw a held row."""
    held = _find(request, slug, pk)
    try:
        run = remove_row(held, by=by_person(request))
    except MemoryHubError as error:
        messages.error(request, error.message)
    else:
        if run is None:
            messages.success(request, gettext("History entry withdrawn."))
        else:
            add_edit_message(request, run)
    return redirect("review", slug)


@require_POST
def remove_held_rows(request: HttpRequest, slug: str) -> HttpResponse:
    """Withdraw all held rows that the person has been shown or could have been."""
    workspace = get_workspace(request, slug, role=EDITOR)
    count = remove_rows(workspace, up_to=parse_int(request.POST.get("up_to")) or 0, by=by_person(request))
    text = ngettext("%(count)s flagged addition removed.", "%(count)s flagged additions removed.", count)
    messages.success(request, text % {"count": f"{count:,}"})
    return redirect("review", slug)


def _find(request: HttpRequest, slug: str, pk: int) -> HeldRow:
    workspace = get_workspace(request, slug, role=EDITOR)
    found: HeldRow = get_object_or_404(HeldRow.objects.select_related("workspace"), workspace=workspace, pk=pk)
    return found
