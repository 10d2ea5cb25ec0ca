"""The pages of figures and charts of a workspace and of a session, and the charts as CSV."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from memoryhub.insights.charts import CHARTS, OF_SESSION, Insights
from memoryhub.lib.charts import Proportion, proportion
from memoryhub.lib.date_ranges import month_of
from memoryhub.lib.http.downloads import download
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page
from memoryhub.lib.time_charts import Range, chart_csv
from memoryhub.lib.time_units import parse_range
from memoryhub.permissions import get_workspace
from sessions_app.models import Session
from sessions_app.services.stats import TokenFigures, count_tokens_of, figures_by_kind, figures_of

FIRST = ("tokens", "compression", "context", "messages")  # without messages, the page shows none of these
OTHERS = ("memory", "facts", "reads", "model", "cost", "seconds", "hygiene")
HIDDEN = ("cost", "seconds")  # if empty: they belong to another chart


def statistics(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    sessions = Session.objects.filter(workspace=workspace)
    page = keyset_page(sessions, order=("-total_tokens", "-id"), params=request.GET, size=25)
    insights = Insights(workspace, between=_range(request))
    figures = count_tokens_of(sessions)
    context = {
        "workspace": workspace,
        "page": page,
        "rows": [(session, _share(figures_of(session))) for session in page.rows],
    }
    keys = (*(FIRST if figures.entries else ()), *OTHERS)
    return render_page(request, "insights/statistics.html", context | _figures(insights, figures, keys))


def session_statistics(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    session: Session = get_object_or_404(Session, workspace=workspace, pk=pk)
    insights = Insights(workspace, session, _range(request))
    context = {
        "workspace": workspace,
        "session": session,
        "session_event": f"session-{session.pk} any-session",
    }
    figures = figures_of(session)
    keys = OF_SESSION if figures.entries else ()
    return render_page(request, "insights/session_statistics.html", context | _figures(insights, figures, keys))


@require_GET
def statistics_csv(request: HttpRequest, slug: str, chart: str, pk: int | None = None) -> HttpResponse:
    """Return the figures of one chart."""
    workspace = get_workspace(request, slug)
    session = None if pk is None else get_object_or_404(Session, workspace=workspace, pk=pk)
    insights = Insights(workspace, session, _range(request))
    if chart not in (CHARTS if pk is None else OF_SESSION):
        raise Http404
    return download(chart_csv(insights.card(chart).chart), f"{slug}-{chart}.csv")


def _range(request: HttpRequest) -> Range:
    return parse_range(request.GET.get("from"), request.GET.get("to"))


def _figures(insights: Insights, figures: TokenFigures, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return what insights/figures.html shows."""
    cards = insights.cards(keys)
    return {
        "figures": figures,
        "kinds": figures_by_kind(insights.days),
        "shown": [card for card in cards if card.chart.columns],
        "empty": [card for card in cards if not card.chart.columns and card.key not in HIDDEN],
        "share": _share(figures),
        "between": insights.between,
        "months": [
            (gettext("This month"), *month_of(timezone.localdate())),
            (gettext("Last month"), *month_of(timezone.localdate(), back=1)),
        ],
    }


def _share(figures: TokenFigures) -> Proportion:
    return proportion(original=figures.original_tokens, active=figures.active_tokens, summary=figures.summary_tokens)
