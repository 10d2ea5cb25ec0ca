"""Compression statistics of workspaces and sessions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import Coalesce

from sessions_app.models import DailyTotal, Entry, ImportReport, Session, Workspace
from sessions_app.services.totals import AMOUNTS


@dataclass(frozen=True)
class TokenFigures:
    """Tokens of all entries, of active entries, and of summaries in the context."""

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
        """Tokens saved by summaries; negative if they are longer than what they replace."""
        return self.original_tokens - self.context_tokens

    @property
    def ratio(self) -> float | None:
        """Original tokens per token in the context; None for an empty context."""
        return self.original_tokens / self.context_tokens if self.context_tokens else None


@dataclass(frozen=True)
class DayTokens:
    """Tokens of one day: active ones, and those replaced by a summary (folded)."""

    day: date
    active: int
    folded: int


@dataclass(frozen=True)
class KindFigures:
    """Number, tokens and active tokens of one kind of entry."""

    kind: str
    label: str
    entries: int
    tokens: int
    active_tokens: int


def count_tokens_of(sessions: QuerySet[Session]) -> TokenFigures:
    """Sum the totals of sessions in one query."""
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
    """Return the daily totals by kind of a workspace or session, oldest first."""
    rows = DailyTotal.objects.filter(workspace=workspace, session=session).order_by("day", "kind")
    added = rows.values_list("day", "kind").annotate(*map(Sum, AMOUNTS))
    return [DailyTotal(day=day, kind=kind, **dict(zip(AMOUNTS, sums, strict=True))) for day, kind, *sums in added]


def tokens_by_day(rows: Iterable[DailyTotal]) -> list[DayTokens]:
    """Sum daily totals over kinds: active and summarised tokens by day."""
    days: dict[date, tuple[int, int]] = {}
    for row in rows:
        active, folded = days.get(row.day, (0, 0))
        days[row.day] = (
            active + row.active_token_count,
            folded + row.token_count - row.active_token_count,
        )
    return [DayTokens(day, active, folded) for day, (active, folded) in days.items()]


def entries_over_time(rows: Iterable[DailyTotal]) -> list[tuple[date, int]]:
    """Return the cumulative number of entries by day."""
    days: dict[date, int] = {}
    total = 0
    for row in rows:
        total += row.entry_count
        days[row.day] = total
    return list(days.items())


def figures_by_kind(rows: Iterable[DailyTotal]) -> list[KindFigures]:
    """Sum daily totals over days: one row for each kind that occurs."""
    sums: dict[str, list[int]] = {}
    for row in rows:
        total = sums.setdefault(row.kind, [0, 0, 0])
        for i, count in enumerate((row.entry_count, row.token_count, row.active_token_count)):
            total[i] += count
    return [KindFigures(kind.value, str(kind.label), *sums[kind.value]) for kind in Entry.Kind if kind.value in sums]


def latest_import(workspace: Workspace) -> ImportReport | None:
    return workspace.import_reports.select_related("job").order_by("-id").first()
