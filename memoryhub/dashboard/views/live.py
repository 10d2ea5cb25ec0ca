"""Requests of open pages: whether anything changed, and the navigation with current counts."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET
from django_htmx.http import HttpResponseStopPolling, trigger_client_event

from memoryhub.audit.changes import Changes, read_changes
from memoryhub.lib.http.pagination import parse_int
from memoryhub.permissions import get_workspace
from sessions_app.models import AuditRecord, Workspace

MAX_NAMED_SESSIONS = 50


@login_not_required
@require_GET
def changes(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Answer 204 with the events that open pages wait for, if any; 286, which ends polling, once signed out.

    ``after`` and ``seen`` are those of the last answer or of the page. Without a workspace: of all visible ones.
    """
    if not request.user.is_authenticated:
        return HttpResponseStopPolling()
    visible = Workspace.objects.visible_to(request.user)
    visible = visible.filter(slug=slug) if slug else visible
    after = parse_int(request.GET.get("after")) or 0
    told = AuditRecord.objects.filter(workspace__in=visible.values("pk"))
    news = read_changes(told, after=after, seen=parse_int(request.GET.get("seen")))
    if news is None and slug and not visible.exists():
        raise Http404
    response = HttpResponse(status=204)
    if news is None or (not news.kinds and "seen" in request.GET):
        return response
    for name, detail in _events(news).items():
        trigger_client_event(response, name, detail)
    return response


def _events(news: Changes) -> dict[str, dict[str, Any]]:
    """Return the page's events by name: one for the counter, one for each kind and each session."""
    sessions = sorted(news.sessions)
    is_of_any = news.is_of_any_session or len(sessions) > MAX_NAMED_SESSIONS
    named = ["any-session"] if is_of_any else [f"session-{pk}" for pk in sessions]
    kinds = sorted(news.kinds)
    counter = {"after": news.newest, "seen": news.seen, "kinds": kinds, "sessions": sessions[:MAX_NAMED_SESSIONS]}
    return {"memory-changed": counter} | {f"changed-{name}": {} for name in [*kinds, *named]}


@require_GET
def live_navigation(request: HttpRequest, slug: str) -> HttpResponse:
    """The side navigation of the requesting page with current counts."""
    get_workspace(request, slug)
    return render(request, "includes/sidenav.html")
