from __future__ import annotations

from collections.abc import Sequence

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone

from knowledge_app.models import MemoryDocument
from memoryhub.conversations.context import build_context, context_text, seen_in
from memoryhub.dashboard.attention import needs_of
from memoryhub.dashboard.health import health_of
from memoryhub.dashboard.navigation import count_parts
from memoryhub.dashboard.scope import reach_of
from memoryhub.dashboard.views import shown_needs
from memoryhub.lib.charts import growth
from memoryhub.lib.gate import json_text
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pages import number_of
from sessions_app.access import get_workspace, has_role, note_page
from sessions_app.models import AuditRecord, Membership, Session, Workspace
from sessions_app.services.stats import daily_totals, entries_over_time, latest_import
from sessions_app.services.windows import DEFAULT_MAX_MESSAGES, Dropped


def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """What needs the person in a workspace, how it is doing, and what it holds."""
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
        "growth": growth(entries_over_time(daily_totals(workspace))),
        "sessions": sessions.order_by("-updated_at", "-id")[:6],
        "documents": MemoryDocument.objects.filter(workspace=workspace).select_related("head").order_by("name"),
        "changes": AuditRecord.objects.filter(workspace=workspace).order_by("-id")[:8],
        "report": latest_import(workspace),
        "may_import": bool(workspace.path) and is_operator,
        "may_end": is_operator,
    }
    context |= shown_needs(needs_of(reach_of(request.user).within(workspace), now=now), request.GET)
    return render_page(request, "memoryhub/workspace.html", context)


def session_context(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    session: Session = get_object_or_404(Session.objects.select_related("workspace"), workspace=workspace, pk=pk)
    asked_messages = number_of(request.GET.get("max_messages"), digits=8)
    max_messages = DEFAULT_MAX_MESSAGES if asked_messages is None else asked_messages
    asked_tokens = number_of(request.GET.get("max_tokens"), digits=8)
    max_tokens = workspace.max_tokens if asked_tokens is None else asked_tokens
    built = build_context(session, max_messages=max_messages, max_tokens=max_tokens)
    note_page(request, workspace, "context.read", seen_in(built))
    shown = built.parts
    context = {
        "workspace": workspace,
        "session": session,
        "max_messages": max_messages,
        "max_tokens": max_tokens,
        "text": context_text(built) if request.GET.get("form") == "text" else None,
        "context": built,
        "dropped": _stretches(built.dropped),
        "system_parts": [part for part in shown if part.source != "entry"],
        "entry_parts": [
            (part, json_text(part.message["tool_calls"]) if "tool_calls" in part.message else "")
            for part in shown
            if part.source == "entry"
        ],
    }
    return render_page(request, "memoryhub/context.html", context, fragment="context")


def _stretches(dropped: Sequence[Dropped]) -> list[tuple[int | None, int | None, str]]:
    """Put neighbours that were left out for the same reason together: first and last position, and why."""
    found: list[tuple[int | None, int | None, str]] = []
    for drop in dropped:
        first, last, why = found[-1] if found else (None, None, "")
        if last is not None and drop.position == last + 1 and drop.why == why:
            found[-1] = (first, drop.position, why)
        else:
            found.append((drop.position, drop.position, drop.why))
    return found
