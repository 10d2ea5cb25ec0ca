"""Compression figures of a workspace and of a session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import Coalesce

from memoryhub.lib.charts import DayTokens
from sessions_app.models import DailyTotal, Entry, ImportReport, Session, Workspace


@dataclass(frozen=True)
class TokenFigures:
    """Tokens of all entries, of those in the context, and of what stands for the rest."""

    sessions: int
    entries: int
    active_entries: int
    original_tokens: int
    active_tokens: int
    summary_tokens: int

    @property
    def context_tokens(self) -> int:
        return self.active_tokens + self.summary_tokens

    @property
    def saved_tokens(self) -> int:
        """Tokens that the model need not read; below zero where summaries are longer than what they replace."""
        return self.original_tokens - self.context_tokens

    @property
    def ratio(self) -> float | None:
        """Original tokens for each one in the context; None where nothing is in it."""
        return self.original_tokens / self.context_tokens if self.context_tokens else None


@dataclass(frozen=True)
class KindFigures:
    """One kind of entry: how many, their tokens, and how many of those are in the context."""

    kind: str
    label: str
    entries: int
    tokens: int
    active_tokens: int


def count_tokens_of(sessions: QuerySet[Session]) -> TokenFigures:
    """Add up the totals of some sessions, in one query."""
    sums = sessions.order_by().aggregate(
        sessions=Count("id"),
        entries=Coalesce(Sum("entry_count"), 0),
        active_entries=Coalesce(Sum("active_entry_count"), 0),
        original=Coalesce(Sum("total_tokens"), 0),
        active=Coalesce(Sum("active_tokens"), 0),
        summary=Coalesce(Sum("summary_tokens"), 0),
    )
    return TokenFigures(
        sessions=sums["sessions"],
        entries=sums["entries"],
        active_entries=sums["active_entries"],
        original_tokens=sums["original"],
        active_tokens=sums["active"],
        summary_tokens=sums["summary"],
    )


def figures_of(session: Session) -> TokenFigures:
    return TokenFigures(
        sessions=1,
        entries=session.entry_count,
        active_entries=session.active_entry_count,
        original_tokens=session.total_tokens,
        active_tokens=session.active_tokens,
        summary_tokens=session.summary_tokens,
    )


def daily_totals(workspace: Workspace, session: Session | None = None) -> list[DailyTotal]:
    """Return the days of a workspace, or of one session, oldest first: one row for each day and kind."""
    rows = DailyTotal.objects.filter(workspace=workspace, session=session)
    return list(rows.order_by("day", "kind"))


def tokens_by_day(rows: Iterable[DailyTotal]) -> list[DayTokens]:
    """Add the kinds up: tokens written on each day that are in the context still, and those folded away."""
    days: dict[date, tuple[int, int]] = {}
    for row in rows:
        active, folded = days.get(row.day, (0, 0))
        days[row.day] = (
            active + row.active_token_count,
            folded + row.token_count - row.active_token_count,
        )
    return [DayTokens(day, active, folded) for day, (active, folded) in days.items()]


def entries_over_time(rows: Iterable[DailyTotal]) -> list[tuple[date, int]]:
    """Return the number of entries kept by the end of each day."""
    days: dict[date, int] = {}
    total = 0
    for row in rows:
        total += row.entry_count
        days[row.day] = total
    return list(days.items())


def figures_by_kind(rows: Iterable[DailyTotal]) -> list[KindFigures]:
    """Add the days up: one row for each kind of entry that occurs, in the order in which kinds are defined."""
    sums: dict[str, list[int]] = {}
    for row in rows:
        total = sums.setdefault(row.kind, [0, 0, 0])
        for i, count in enumerate((row.entry_count, row.token_count, row.active_token_count)):
            total[i] += count
    return [KindFigures(kind.value, str(kind.label), *sums[kind.value]) for kind in Entry.Kind if kind.value in sums]


def latest_import(workspace: Workspace) -> ImportReport | None:
    return workspace.import_reports.order_by("-id").first()
