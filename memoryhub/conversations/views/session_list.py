from __future__ import annotations

from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy

from memoryhub.conversations.forms import ORDERS, SessionFilterForm
from memoryhub.lib.bulk_selection import Action
from memoryhub.lib.charts import proportion
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page
from memoryhub.permissions import get_workspace, has_role
from sessions_app.models import DeletedSession, Membership, Session, Workspace

ARCHIVE = Action("archive", gettext_lazy("Archive"))
UNARCHIVE = Action("unarchive", gettext_lazy("Unarchive"))
WORK = (
    Action("compress", gettext_lazy("Compress")),
    Action("consolidate", gettext_lazy("Consolidate")),
    Action("prune", gettext_lazy("Prune to window")),
    Action("export", gettext_lazy("Export"), is_file=True),
)
STATES = {
    "folded": Q(active_entry_count__lt=F("entry_count")),
    "hidden": Q(is_visible_to_agent=False),
    "restarted": Q(epoch__gt=0),
}


def session_list(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    form, filters, sessions = matching_sessions(request, workspace)
    page = keyset_page(sessions, order=ORDERS[filters.get("sort") or "recent"], params=request.GET)
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "count": sessions.count(),
        "may_edit": has_role(request.user, workspace, Membership.Role.EDITOR),
        "actions": _actions(request, workspace, is_archive=filters.get("state") == "archived"),
        "tombstones": _tombstones(request, workspace),
        "has_any": bool(page.rows) or workspace.sessions.exists(),
        "is_filtered": any(filters.get(name) for name in ("q", "channel", "state")),
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
    return render_page(request, "conversations/list.html", context, fragment="session-list")


def _tombstones(request: HttpRequest, workspace: Workspace) -> list[DeletedSession]:
    if not has_role(request.user, workspace, Membership.Role.OPERATOR):
        return []
    return list(DeletedSession.objects.filter(workspace=workspace).order_by("-deleted_at", "-id")[:50])


def _channels(workspace: Workspace) -> list[str]:
    found = Session.objects.filter(workspace=workspace).exclude(channel="").order_by("channel")
    return list(found.values_list("channel", flat=True).distinct()[:200])


def _actions(request: HttpRequest, workspace: Workspace, *, is_archive: bool) -> list[Action]:
    """Return the actions for selected sessions. Only operators may delete."""
    move = UNARCHIVE if is_archive else ARCHIVE
    if not has_role(request.user, workspace, Membership.Role.OPERATOR):
        return [move, *WORK]
    url = f"{reverse('delete-sessions', args=[workspace.slug])}?{request.GET.urlencode()}"
    return [move, *WORK, Action("delete", gettext_lazy("Delete…"), url=url, is_danger=True)]


def matching_sessions(
    request: HttpRequest, workspace: Workspace
) -> tuple[SessionFilterForm, dict[str, str], QuerySet[Session]]:
    """Return the list's filter form, its values, and the matching sessions: archived ones only with their filter."""
    form = SessionFilterForm(request.GET, channels=_channels(workspace))
    filters = form.cleaned_data if form.is_valid() else {}
    is_archive = filters.get("state") == "archived"
    sessions = Session.objects.filter(workspace=workspace, archived_at__isnull=not is_archive)
    if text := filters.get("q"):
        sessions = sessions.filter(any_case("key__icontains", text) | any_case("title__icontains", text))
    if channel := filters.get("channel"):
        sessions = sessions.filter(channel=channel)
    if (state := filters.get("state")) and not is_archive:
        sessions = sessions.filter(STATES[state])
    return form, filters, sessions
