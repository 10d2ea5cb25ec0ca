"""Compress, consolidate, prune, archive, export or delete several sessions."""

from __future__ import annotations

import tempfile
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet, Sum
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.conversations.views.session_list import matching_sessions
from memoryhub.edit_responses import answer_edit, list_address
from memoryhub.lib.bulk_selection import action_value, check_count, selected_keys, submitted_rows
from memoryhub.lib.errors import Invalid, MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_int
from memoryhub.permissions import EDITOR, OPERATOR, by_person, get_workspace, log_page_access, person
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.access_log import seen_sessions
from sessions_app.services.audit import By, record
from sessions_app.services.transfer import export_sessions

ACTIONS = ("compress", "consolidate", "prune", "archive", "unarchive")
MAX_EXPORTED = 2_000  # sessions per archive, which is created during the request
IN_MEMORY = 10 * 2**20
SHOWN = 20


@require_POST
def edit_sessions(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Apply an action to the selected sessions, or to all that match the filters."""
    workspace = get_workspace(request, slug, role=EDITOR)
    address = list_address(request, slug, "sessions:list")
    if request.POST.get("action") != "export":
        return answer_edit(request, slug, address, lambda: (_edit(request, workspace), ""))
    try:
        return _export(request, workspace)
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect(address)


def _selected(request: HttpRequest, workspace: Workspace) -> list[int]:
    """Return the primary keys of the selected sessions that exist. Raises Conflict, Invalid."""
    _form, _filters, matching = matching_sessions(request, workspace)
    keys = set(selected_keys(request, matching))
    existing = Session.objects.filter(workspace=workspace).order_by("pk").values_list("pk", flat=True)
    found = [pk for pk in existing if pk in keys]
    if not found:
        raise Invalid(_("Select at least one conversation."), code="nothing_chosen")
    return found


def _edit(request: HttpRequest, workspace: Workspace) -> Run:
    action = request.POST.get("action", "")
    if action not in ACTIONS:
        raise Invalid(_("Choose an action."), code="nothing_chosen")
    values = {"keep": workspace.memory_window} if action == "prune" else {}
    pks = _selected(request, workspace)
    return edit_rows(workspace, "sessions", action, pks, values=values, by=by_person(request))


def _export(request: HttpRequest, workspace: Workspace) -> HttpResponseBase:
    pks = _selected(request, workspace)
    if len(pks) > MAX_EXPORTED:
        raise Invalid(
            _("Export at most %(count)s conversations at once.") % {"count": f"{MAX_EXPORTED:,}"},
            code="nothing_chosen",
        )
    out = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  the response closes it
    sessions = Session.objects.filter(workspace=workspace, pk__in=pks).select_related("workspace").order_by("pk")
    count = export_sessions(sessions.iterator(chunk_size=50), out)
    out.seek(0)
    now, text = timezone.now(), f"{count:,} session{'' if count == 1 else 's'} exported"
    record(By(person(request), now), "sessions.exported", "workspace", workspace.pk, text, workspace=workspace)
    log_page_access(request, workspace, "session.exported", seen_sessions(pks))
    return FileResponse(out, as_attachment=True, filename=f"sessions-{workspace.slug}-{now:%Y-%m-%d}.zip")


@require_POST
def delete_sessions(request: HttpRequest, slug: str) -> HttpResponse:
    """Permanently delete sessions after their number was typed and is still correct."""
    workspace = get_workspace(request, slug, role=OPERATOR)
    address = list_address(request, slug, "sessions:list")
    try:
        pks = _selected(request, workspace)
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect(address)
    if "typed" not in request.POST:
        return _confirm(request, workspace, pks)
    typed = request.POST["typed"].strip().replace(",", "").replace(".", "")
    if parse_int(typed) != len(pks):
        return _confirm(request, workspace, pks, is_wrong=True)

    def delete() -> tuple[Run, str]:
        check_count(len(pks), parse_int(request.POST.get("shown")))
        values = {"reason": action_value(request, "delete")}
        by = by_person(request)
        return edit_rows(workspace, "sessions", "delete", pks, values=values, by=by), ""

    return answer_edit(request, slug, address, delete)


def _confirm(request: HttpRequest, workspace: Workspace, pks: list[int], *, is_wrong: bool = False) -> HttpResponse:
    """Show what would be deleted and ask for the number. A selection of all is counted again on submit."""
    sessions: QuerySet[Session] = Session.objects.filter(workspace=workspace, pk__in=pks)
    is_all = bool(request.POST.get("all"))
    context: dict[str, Any] = {
        "workspace": workspace,
        "count": len(pks),
        "sessions": list(sessions.order_by("-updated_at", "-id")[:SHOWN]),
        "more": max(0, len(pks) - SHOWN),
        "totals": sessions.aggregate(entries=Sum("entry_count"), tokens=Sum("total_tokens")),
        "is_all": is_all,
        "kept": "" if is_all else ",".join(submitted_rows(request)),
        "reason": action_value(request, "delete"),
        "is_wrong": is_wrong,
        "list_url": list_address(request, workspace.slug, "sessions:list"),
    }
    return render_page(request, "conversations/delete_many.html", context, status=422 if is_wrong else 200)
