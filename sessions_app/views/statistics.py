from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from memoryhub.lib.charts import growth, proportion, stacked_bars
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pages import keyset_page
from sessions_app.access import get_workspace
from sessions_app.models import Session
from sessions_app.services.stats import (
    count_tokens_of,
    daily_totals,
    entries_over_time,
    figures_by_kind,
    tokens_by_day,
)


def statistics(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    sessions = Session.objects.filter(workspace=workspace)
    figures = count_tokens_of(sessions)
    days = daily_totals(workspace)
    page = keyset_page(sessions, order=("-total_tokens", "-id"), params=request.GET, size=25)
    context = {
        "workspace": workspace,
        "figures": figures,
        "kinds": figures_by_kind(days),
        "bars": stacked_bars(tokens_by_day(days)),
        "growth": growth(entries_over_time(days)),
        "share": proportion(
            original=figures.original_tokens, active=figures.active_tokens, summary=figures.summary_tokens
        ),
        "page": page,
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
    return render_page(request, "sessions_app/statistics.html", context, fragment="session-figures")
