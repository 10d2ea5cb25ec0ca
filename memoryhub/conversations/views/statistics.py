from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from memoryhub.lib.charts import Proportion, growth, proportion, stacked_bars
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pagination import keyset_page
from memoryhub.permissions import get_workspace
from sessions_app.models import DailyTotal, Session
from sessions_app.services.stats import (
    TokenFigures,
    count_tokens_of,
    daily_totals,
    entries_over_time,
    figures_by_kind,
    figures_of,
    tokens_by_day,
)


def statistics(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    sessions = Session.objects.filter(workspace=workspace)
    page = keyset_page(sessions, order=("-total_tokens", "-id"), params=request.GET, size=25)
    context = {
        "workspace": workspace,
        "page": page,
        "rows": [(session, _share(figures_of(session))) for session in page.rows],
    } | _figures(count_tokens_of(sessions), daily_totals(workspace))
    return render_page(request, "conversations/statistics.html", context)


def session_statistics(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    session: Session = get_object_or_404(Session, workspace=workspace, pk=pk)
    context = {
        "workspace": workspace,
        "session": session,
        "session_event": f"session-{session.pk} any-session",
    }
    context |= _figures(figures_of(session), daily_totals(workspace, session))
    return render_page(request, "conversations/session_statistics.html", context)


def _figures(figures: TokenFigures, days: list[DailyTotal]) -> dict[str, Any]:
    """Return what conversations/figures.html shows."""
    return {
        "figures": figures,
        "kinds": figures_by_kind(days),
        "bars": stacked_bars(tokens_by_day(days)),
        "growth": growth(entries_over_time(days)),
        "share": _share(figures),
    }


def _share(figures: TokenFigures) -> Proportion:
    return proportion(original=figures.original_tokens, active=figures.active_tokens, summary=figures.summary_tokens)
