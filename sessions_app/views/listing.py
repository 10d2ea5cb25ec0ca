from __future__ import annotations

from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse

from memoryhub.lib.charts import proportion
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pages import keyset_page
from sessions_app.access import get_workspace, has_role
from sessions_app.forms import ORDERS, SessionFilterForm
from sessions_app.models import DeletedSession, Membership, Session, Workspace

STATES = {
    "folded": Q(active_entry_count__lt=F("entry_count")),
    "hidden": Q(is_visible_to_agent=False),
    "restarted": Q(epoch__gt=0),
}


def session_list(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    form = SessionFilterForm(request.GET, channels=_channels(workspace))
    wishes = form.cleaned_data if form.is_valid() else {}
    sessions = _filtered(Session.objects.filter(workspace=workspace), wishes)
    page = keyset_page(sessions, order=ORDERS[wishes.get("sort") or "recent"], params=request.GET)
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "count": sessions.count(),
        "may_edit": has_role(request.user, workspace, Membership.Role.EDITOR),
        "tombstones": _tombstones(request, workspace),
        "is_filtered": any(wishes.get(name) for name in ("q", "channel", "state")),
        "rows": [
            (
                session,
                proportion(
                    original=session.total_tokens, active=session.active_tokens, summary=session.summary_tokens
                ),
            )
            for session in page.rows
        ],
    }
    return render_page(request, "sessions_app/list.html", context, fragment="session-list")


def _tombstones(request: HttpRequest, workspace: Workspace) -> list[DeletedSession]:
    if not has_role(request.user, workspace, Membership.Role.OPERATOR):
        return []
    return list(DeletedSession.objects.filter(workspace=workspace).order_by("-deleted_at", "-id")[:50])


def _channels(workspace: Workspace) -> list[str]:
    found = Session.objects.filter(workspace=workspace).exclude(channel="").order_by("channel")
    return list(found.values_list("channel", flat=True).distinct()[:200])


def _filtered(sessions: QuerySet[Session], wishes: dict[str, str]) -> QuerySet[Session]:
    if text := wishes.get("q"):
        sessions = sessions.filter(Q(key__icontains=text) | Q(title__icontains=text))
    if channel := wishes.get("channel"):
        sessions = sessions.filter(channel=channel)
    if state := wishes.get("state"):
        sessions = sessions.filter(STATES[state])
    return sessions
