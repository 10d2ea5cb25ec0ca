"""The charts of a workspace and of a session, by key.

Days are in UTC, as in the daily totals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from django.urls import reverse
from django.utils.translation import gettext

from memoryhub.insights import context_sizes, series
from memoryhub.lib.time_charts import LAST, MEAN, ChartLinks, Event, Range, Series, TimeChart, time_chart
from sessions_app.models import DailyTotal, Session, Workspace
from sessions_app.services.stats import daily_totals, entries_over_time, tokens_by_day

ANY_TIME: Range = (None, None)
LEAST_SECONDS = 0.05  # shorter times are shown as 0.0 s


@dataclass(frozen=True)
class ChartCard:
    """A chart on a page. ``empty``: why it has no columns."""

    key: str
    chart: TimeChart
    links: ChartLinks
    note: str = ""
    empty: str = ""


class Insights:
    """The charts of a workspace, or of one session, between two days. Each query is made once, when it is needed."""

    def __init__(self, workspace: Workspace, session: Session | None = None, between: Range = ANY_TIME) -> None:
        self.workspace, self.session, self.between = workspace, session, between

    @cached_property
    def days(self) -> list[DailyTotal]:
        return daily_totals(self.workspace, self.session)

    @cached_property
    def events(self) -> list[Event]:
        return series.events_of(self.workspace, self.session)

    @cached_property
    def facts(self) -> series.FactChanges:
        return series.fact_changes(self.workspace)

    @cached_property
    def model_runs(self) -> series.ModelRuns:
        return series.model_runs(self.workspace)

    def cards(self, keys: Sequence[str]) -> list[ChartCard]:
        return [self.card(key) for key in keys]

    def card(self, key: str) -> ChartCard:
        chart = CHARTS[key](self)
        return ChartCard(key, chart, self.links(key), *_texts(key, chart))

    def links(self, key: str) -> ChartLinks:
        slug = self.workspace.slug
        if self.session is None:
            page = reverse("sessions:statistics", args=[slug])
            csv = reverse("sessions:statistics-csv", args=[slug, key])
        else:
            page = reverse("sessions:session-statistics", args=[slug, self.session.pk])
            csv = reverse("sessions:session-statistics-csv", args=[slug, self.session.pk, key])
        dates = {name: day.isoformat() for name, day in zip(("from", "to"), self.between, strict=True) if day}
        query = "&".join(f"{name}={day}" for name, day in dates.items())
        return ChartLinks(f"{csv}?{query}" if query else csv, self._open_url(key), page)

    def _open_url(self, key: str) -> str:
        if key in OF_MESSAGES:
            words = f'session:"{self.session.key}" ' if self.session else ""
            query = quote(f"{words}kind:entry after:FROM before:AFTER")
            return f"{reverse('search', args=[self.workspace.slug])}?q={query}"
        return f"{reverse('timeline', args=[self.workspace.slug])}?from=FROM&to=TO"


def _tokens(insights: Insights) -> TimeChart:
    days = tokens_by_day(insights.days)
    shown = [
        Series("active", gettext("In the context"), {one.day: one.active for one in days}),
        Series("folded", gettext("Compressed"), {one.day: one.folded for one in days}),
    ]
    return time_chart(gettext("Tokens"), shown, between=insights.between, events=insights.events)


def _messages(insights: Insights) -> TimeChart:
    shown = [Series("active", gettext("Messages"), dict(entries_over_time(insights.days)))]
    return time_chart(
        gettext("Messages over time"), shown, how=LAST, between=insights.between, events=insights.events
    )


def _compression(insights: Insights) -> TimeChart:
    saved, kept = series.compression(insights.workspace, insights.session)
    shown = [
        Series("summary", gettext("Tokens of the summaries"), kept),
        Series("folded", gettext("Tokens saved"), saved),
    ]
    return time_chart(gettext("Compression"), shown, between=insights.between)


def _context(insights: Insights) -> TimeChart:
    sizes = context_sizes.largest_context(insights.workspace, insights.session)
    budget = insights.workspace.max_tokens
    ends = [day for day in (min(sizes, default=None), max(sizes, default=None)) if day]
    shown = [
        Series("active", gettext("Largest context") if insights.session is None else gettext("Context"), sizes),
        Series("limit", gettext("Budget (limit for compression)"), dict.fromkeys(ends, float(budget))),
    ]
    return time_chart(
        gettext("Largest context and its budget"),
        shown,
        how=LAST,
        between=insights.between,
        events=insights.events,
    )


def _memory(insights: Insights) -> TimeChart:
    knowledge, observations = series.rows_over_time(insights.workspace)
    named = [
        Series("facts", gettext("Facts"), series.facts_over_time(insights.facts)),
        Series("knowledge", gettext("Knowledge"), knowledge),
        Series("observations", gettext("Observations"), observations),
    ]
    shown = [one for one in named if one.values]
    return time_chart(gettext("Memory over time"), shown, how=LAST, between=insights.between, events=insights.events)


def _facts(insights: Insights) -> TimeChart:
    changes = insights.facts
    shown = [
        Series("added", gettext("Added"), changes.added),
        Series("changed", gettext("Changed"), changes.changed),
        Series("removed", gettext("Removed"), changes.removed),
    ]
    return time_chart(gettext("Facts"), shown, between=insights.between, least="week", events=insights.events)


def _reads(insights: Insights) -> TimeChart:
    shown = [Series("reads", gettext("Reads"), series.agent_reads(insights.workspace))]
    return time_chart(gettext("Reads by agents"), shown, between=insights.between)


def _model(insights: Insights) -> TimeChart:
    runs = insights.model_runs
    shown = [
        Series("prompt", gettext("Prompt tokens"), runs.prompt),
        Series("summary", gettext("Completion tokens"), runs.completion),
    ]
    return time_chart(gettext("Model tokens"), shown, between=insights.between)


def _cost(insights: Insights) -> TimeChart:
    shown = [Series("cost", gettext("Cost"), insights.model_runs.cost)]
    return time_chart(gettext("Model cost"), shown, between=insights.between, unit="$")


def _seconds(insights: Insights) -> TimeChart:
    timed = {day: seconds for day, seconds in insights.model_runs.seconds.items() if seconds >= LEAST_SECONDS}
    shown = [Series("seconds", gettext("Seconds"), timed)]
    return time_chart(gettext("Average time of a model run"), shown, how=MEAN, between=insights.between, unit="s")


def _hygiene(insights: Insights) -> TimeChart:
    shown = [Series("score", gettext("Score"), series.hygiene_scores(insights.workspace))]
    return time_chart(gettext("Hygiene score"), shown, how=LAST, between=insights.between)


CHARTS: dict[str, Callable[[Insights], TimeChart]] = {
    "tokens": _tokens,
    "messages": _messages,
    "compression": _compression,
    "context": _context,
    "memory": _memory,
    "facts": _facts,
    "reads": _reads,
    "model": _model,
    "cost": _cost,
    "seconds": _seconds,
    "hygiene": _hygiene,
}
OF_MESSAGES = ("tokens", "messages", "context")
OF_SESSION = ("tokens", "messages", "context", "compression")


def _texts(key: str, chart: TimeChart) -> tuple[str, str]:
    """Return the note of a chart, and why it is empty."""
    if key == "tokens":
        return chart.note, ""
    notes = {
        "context": gettext("rebuilt from message dates, compressions and consolidations"),
        "memory": gettext("by the day on which the hub learned of it"),
        "hygiene": gettext("0 to 100"),
    }
    empty = {
        "compression": gettext("Nothing has been compressed yet."),
        "context": gettext("No session has messages yet."),
        "memory": gettext("The agent has learned nothing yet."),
        "facts": gettext("No memory document has facts yet."),
        "reads": gettext("No agent has read this memory over REST or MCP yet, or the access log was pruned."),
        "model": gettext("The hub has not called a model for this workspace yet."),
        "cost": gettext("The price of the model isn't known."),
        "seconds": gettext("The hub has not called a model for this workspace yet."),
        "hygiene": gettext("This memory has not been scanned yet."),
    }
    return notes.get(key, ""), empty.get(key, "")
