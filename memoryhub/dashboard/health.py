"""Figures about workspaces for the home page and the overview."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from django.db.models import Count, F, Max, OuterRef, Q, Subquery, Sum
from django.utils import timezone
from django.utils.translation import gettext

from memoryhub.lib.charts import Proportion, proportion
from memoryhub.lib.time_charts import Series, TimeChart, time_chart
from sessions_app.models import AuditRecord, DailyTotal, Run, Session, Workspace
from sessions_app.services.access_log import reads_by_agents
from sessions_app.services.stats import TokenFigures

GROWTH_DAYS = 84  # twelve weeks
RUN_DAYS = 30
READ_DAYS = 7
NOTHING = TokenFigures(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Consolidations:
    """Consolidations of the last 30 days by outcome; ``failed`` includes parked runs."""

    done: int = 0
    held: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.done + self.held + self.failed


@dataclass(frozen=True)
class Gauge:
    """A value and its limit. ``fill`` and ``mark`` are percentages of a bar that has room for both."""

    value: int
    limit: int

    @property
    def is_over(self) -> bool:
        return self.value > self.limit

    @property
    def share(self) -> float:
        """The value as a share of the limit; above 1 if over."""
        return self.value / self.limit if self.limit else 0.0

    @property
    def words(self) -> tuple[str, str]:
        """Value and limit in full, for sentences."""
        return f"{self.value:,}", f"{self.limit:,}"

    @property
    def fill(self) -> float:
        return self._percentage(self.value)

    @property
    def mark(self) -> float:
        return self._percentage(self.limit)

    def _percentage(self, part: int) -> float:
        return round(100 * part / max(self.value, self.limit, 1), 2)


@dataclass(frozen=True)
class Health:
    """The figures of one workspace. Tokens are estimates; ``added`` entries and ``growth`` (by week) cover 12 weeks.

    ``context``: the largest session that the agent sees, against the token limit for compression.
    ``reads``: by agents in the last 7 days. ``active_at``: the time of the last change.
    """

    figures: TokenFigures
    context: Gauge
    growth: TimeChart
    added: int = 0
    consolidations: Consolidations = field(default_factory=Consolidations)
    reads: int = 0
    active_at: datetime | None = None

    @property
    def share(self) -> Proportion:
        figures = self.figures
        return proportion(
            original=figures.original_tokens, active=figures.active_tokens, summary=figures.summary_tokens
        )

    @property
    def saved(self) -> float | None:
        """The share of all tokens that agents' models don't have to read; None if there are none."""
        original = self.figures.original_tokens
        return max(0, self.figures.saved_tokens) / original if original else None

    @property
    def saved_gauge(self) -> Gauge:
        return Gauge(max(0, self.figures.saved_tokens), self.figures.original_tokens)


def shown_columns(figures: Iterable[Health]) -> frozenset[str]:
    """Return the names of the columns that have a value for at least one workspace."""
    found: set[str] = set()
    for health in figures:
        values = {
            "growth": health.figures.entries,
            "context": health.figures.sessions,
            "saved": health.figures.saved_tokens > 0,
            "consolidations": health.consolidations.total,
            "reads": health.reads,
        }
        found |= {name for name, value in values.items() if value}
    return frozenset(found)


def health_of(workspaces: Sequence[Workspace], *, now: datetime) -> dict[int, Health]:
    """Return figures by workspace primary key. Six queries, for any number of workspaces."""
    pks = [workspace.pk for workspace in workspaces]
    figures, largest = _token_figures(pks)
    charts = _growth_of(pks, timezone.localdate(now))
    consolidations = _consolidations(pks, now)
    reads = _reads(pks, now)
    active = _last_changes(pks)
    return {
        workspace.pk: Health(
            figures=figures.get(workspace.pk, NOTHING),
            context=Gauge(largest.get(workspace.pk, 0), workspace.max_tokens),
            growth=charts[workspace.pk][0],
            added=charts[workspace.pk][1],
            consolidations=consolidations.get(workspace.pk, Consolidations()),
            reads=reads.get(workspace.pk, 0),
            active_at=active.get(workspace.pk) or workspace.updated_at,
        )
        for workspace in workspaces
    }


def _token_figures(pks: Sequence[int]) -> tuple[dict[int, TokenFigures], dict[int, int]]:
    """Return the totals of each workspace's sessions, and the largest context that the agent sees."""
    is_visible = Q(archived_at=None, is_visible_to_agent=True)
    rows = (
        Session.objects.filter(workspace__in=pks)
        .order_by()
        .values("workspace")
        .annotate(
            sessions=Count("pk", filter=Q(archived_at=None)),
            all_entries=Sum("entry_count"),
            active_entries=Sum("active_entry_count"),
            original=Sum("total_tokens"),
            active=Sum("active_tokens"),
            in_summaries=Sum("summary_tokens"),
            largest=Max(F("active_tokens") + F("summary_tokens"), filter=is_visible),
        )
    )
    figures, largest = {}, {}
    for row in rows:
        figures[row["workspace"]] = TokenFigures(
            sessions=row["sessions"],
            entries=row["all_entries"],
            active_entries=row["active_entries"],
            original_tokens=row["original"],
            active_tokens=row["active"],
            summary_tokens=row["in_summaries"],
        )
        largest[row["workspace"]] = row["largest"] or 0
    return figures, largest


def _growth_of(pks: Sequence[int], today: date) -> dict[int, tuple[TimeChart, int]]:
    """Return each workspace's messages per week as a chart, and their number in the last 12 weeks.

    Entries dated in the future by agents' clocks count as today's.
    """
    start = today - timedelta(days=GROWTH_DAYS - 1)
    totals = DailyTotal.objects.filter(workspace__in=pks, session=None, day__gte=start).order_by()
    days: defaultdict[int, Counter[date]] = defaultdict(Counter)
    for pk, day, count in totals.values_list("workspace", "day").annotate(n=Sum("entry_count")):
        days[pk][min(day, today)] += count
    label = gettext("Messages")
    return {
        pk: (
            time_chart(label, [Series("active", label, days[pk])], between=(start, today), least="week"),
            days[pk].total(),
        )
        for pk in pks
    }


def _consolidations(pks: Sequence[int], now: datetime) -> dict[int, Consolidations]:
    """Count the hub's own consolidations. Those by agents are dated by their import, so they don't count."""
    since = now - timedelta(days=RUN_DAYS)
    runs = Run.objects.filter(
        workspace__in=pks, kind=Run.Kind.CONSOLIDATION, origin=Run.Origin.HUB, created_at__gte=since
    )
    rows = (
        runs.order_by()
        .values_list("workspace")
        .annotate(
            done=Count("pk", filter=Q(status=Run.Status.DONE)),
            held=Count("pk", filter=Q(status=Run.Status.HELD)),
            failed=Count("pk", filter=Q(status__in=(Run.Status.FAILED, Run.Status.PARKED))),
        )
    )
    return {pk: Consolidations(done, held, failed) for pk, done, held, failed in rows}


def _reads(pks: Sequence[int], now: datetime) -> dict[int, int]:
    """Count agents' reads by workspace. The ids don't tell the time: some are logged later, as those of the demo."""
    read = reads_by_agents().filter(workspace__in=pks, at__gte=now - timedelta(days=READ_DAYS))
    return dict(read.order_by().values_list("workspace").annotate(n=Count("pk")))


def _last_changes(pks: Sequence[int]) -> dict[int, datetime | None]:
    latest = AuditRecord.objects.filter(workspace=OuterRef("pk")).order_by("-id").values("at")[:1]
    rows = Workspace.objects.filter(pk__in=pks).order_by()
    return dict(rows.annotate(changed_at=Subquery(latest)).values_list("pk", "changed_at"))
