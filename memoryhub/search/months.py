"""Matches by month, for the histogram above the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta

from django.db import connection
from django.db.models import Count
from django.utils import timezone
from django.utils.translation import gettext

from memoryhub.lib.search.matching import time_limit
from memoryhub.lib.search.query import Filter, Query
from memoryhub.lib.search.query_editing import without_filter
from memoryhub.lib.time_charts import Series, TimeChart, time_chart
from memoryhub.search.counts import as_searched
from memoryhub.search.filters import DATES, WINDOW, Scope, filtered_kinds
from memoryhub.search.month_counts import by_month, month_of

MILLISECONDS = 150


def count_by_month(scope: Scope, query: Query, *, kinds: Iterable[str] = (), patience: int = 1) -> dict[date, int]:
    """Return the number of matches by the first day of their month, newest 10,000 of each kind; one query.

    The query's dates are ignored. ``patience``: a factor for the time limit. Raises SearchTooSlow.
    """
    anytime = replace(query, filters=tuple(one for one in query.filters if one.field not in DATES))
    parts = [
        filtered.matches(window=WINDOW)
        .order_by()
        .filter(**{f"{filtered.kind.time}__isnull": False})
        .annotate(month=by_month(filtered.kind.time))
        .values("month")
        .annotate(matches=Count("pk"))
        .values_list("month", "matches")
        for filtered in filtered_kinds(scope, as_searched(scope, anytime, kinds), kinds)
        if filtered.kind.time
    ]
    if not parts:
        return {}
    found: Counter[date] = Counter()
    with time_limit(connection, MILLISECONDS * patience):
        for month, matches in parts[0].union(*parts[1:], all=True):
            found[month_of(month).date()] += matches
    return dict(found)


def histogram(
    scope: Scope, query: Query, text: str, *, kinds: Iterable[str] = (), patience: int = 1
) -> tuple[TimeChart, str] | None:
    """Return the matches by month and the query that a month leads to, or None if there is nothing to choose.

    That query has the placeholder MONTH, or FROM and AFTER where columns are longer than a month. Raises
    SearchTooSlow.
    """
    months = count_by_month(scope, query, kinds=kinds, patience=patience)
    dates = [one for one in query.filters if one.field in DATES]
    if len(months) <= 1:
        return None
    shown = {month: count for month, count in months.items() if _is_within(month, dates)}
    series = [Series("active", gettext("Matches"), shown)]
    if dates:
        others = {month: count for month, count in months.items() if month not in shown}
        series.append(Series("changed", gettext("Other months"), others))
    chart = time_chart(gettext("Matches"), series, least="month")
    words = "on:MONTH" if chart.unit == "month" else "after:FROM before:AFTER"
    return chart, f"{words} {_without_dates(text, dates)}".strip()


def _is_within(month: date, dates: Iterable[Filter]) -> bool:
    """Tell whether a part of a month passes all date filters."""
    zone = timezone.get_current_timezone()
    after = (month.replace(day=1) + timedelta(days=32)).replace(day=1)
    for one in dates:
        starts = one.start is None or one.start.astimezone(zone).date() < after
        ends = one.end is None or one.end.astimezone(zone).date() > month
        if (starts and ends) == one.is_excluded:
            return False
    return True


def _without_dates(text: str, dates: Iterable[Filter]) -> str:
    for one in dates:
        for value in one.values:
            text = without_filter(text, one.field, value, is_excluded=one.is_excluded)
    return text
