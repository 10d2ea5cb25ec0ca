from __future__ import annotations

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from knowledge_app.models import MemoryDocument
from memoryhub.dashboard.attention import attention_items
from memoryhub.dashboard.attention_rows import attention_context
from memoryhub.dashboard.health import health_of
from memoryhub.dashboard.navigation import count_parts
from memoryhub.dashboard.scope import role_scope
from memoryhub.insights.charts import Insights
from memoryhub.lib.htmx import render_page
from memoryhub.permissions import get_workspace, has_role
from sessions_app.models import AuditRecord, Membership, Session, Workspace
from sessions_app.services.stats import latest_import


def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """What needs attention in a workspace, its figures and latest changes."""
    workspace = get_workspace(request, slug)
    now = timezone.now()
    sessions = Session.objects.filter(workspace=workspace, archived_at=None)
    in_context = F("active_tokens") + F("summary_tokens")
    is_operator = has_role(request.user, workspace, Membership.Role.OPERATOR)
    context = {
        "workspace": workspace,
        "health": health_of([workspace], now=now)[workspace.pk],
        "largest": sessions.filter(is_visible_to_agent=True).order_by(in_context.desc(), "-id").first(),
        "parts": count_parts(Workspace.objects.filter(pk=workspace.pk))[workspace.pk],
        "growth": Insights(workspace).card("messages"),
        "sessions": sessions.order_by("-updated_at", "-id")[:6],
        "documents": MemoryDocument.objects.filter(workspace=workspace).select_related("head").order_by("name"),
        "changes": AuditRecord.objects.filter(workspace=workspace).order_by("-id")[:8],
        "report": latest_import(workspace),
        "may_import": bool(workspace.path) and is_operator,
        "may_end": is_operator,
    }
    context |= attention_context(attention_items(role_scope(request.user).within(workspace), now=now), request.GET)
    return render_page(request, "dashboard/overview.html", context)
