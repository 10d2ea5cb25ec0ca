from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memoryhub.lib.search.query import parse

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)  # a Saturday
LISBON = ZoneInfo("Europe/Lisbon")
AUCKLAND = ZoneInfo("Pacific/Auckland")


def spans(text, zone=UTC):
    return [(one.start, one.end) for one in parse(text, now=NOW, zone=zone).filters]


def day(text, zone=UTC):
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2026-01-31", "2026-01-31", "2026-02-01"),
        ("2026-12", "2026-12-01", "2027-01-01"),
        ("2024-02", "2024-02-01", "2024-03-01"),
        ("2026", "2026-01-01", "2027-01-01"),
        ("Today", "2026-11-21", "2026-11-22"),
        ("yesterday", "2026-11-20", "2026-11-21"),
        ("friday", "2026-11-20", "2026-11-21"),
        ("saturday", "2026-11-14", "2026-11-15"),
        ("7d", "2026-11-14", "2026-11-15"),
        ("2w", "2026-11-07", "2026-11-08"),
        ("9m", "2026-02-21", "2026-02-22"),
        ("11m", "2025-12-21", "2025-12-22"),
        ("1y", "2025-11-21", "2025-11-22"),
    ],
)
@pytest.mark.parametrize("zone", [UTC, LISBON], ids=str)
def test_dates_are_days_months_and_years_of_a_zone(text, first, last, zone):
    start, end = day(first, zone), day(last, zone)

    assert spans(f"on:{text}", zone) == [(start, end)]
    assert spans(f"since:{text}", zone) == [(start, None)]
    assert spans(f"until:{text}", zone) == [(None, start)]


def test_times_and_hours_are_moments():
    assert spans("after:12h") == [(NOW - timedelta(hours=12), None)]
    assert spans("before:2026-01-31T10:30", LISBON) == [(None, day("2026-01-31T10:30", LISBON))]
    assert spans('after:"2026-01-31 10:30+02:00"') == [(day("2026-01-31T08:30"), None)]
    assert spans("on:2026-01-31T23:30Z", AUCKLAND) == [(day("2026-02-01", AUCKLAND), day("2026-02-02", AUCKLAND))]


def test_today_depends_on_the_zone():
    assert spans("on:today", AUCKLAND) == [(day("2026-11-22", AUCKLAND), day("2026-11-23", AUCKLAND))]


def test_months_end_with_their_last_day():
    [(start, _)] = [(one.start, one.end) for one in parse("after:1m", now=datetime(2026, 3, 31, tzinfo=UTC)).filters]

    assert start == day("2026-02-28")


@pytest.mark.parametrize(
    "text",
    ["2026-02-31", "2026-13", "0000", "0001-01-01", "9999", "99999y", "2026-1-1", "٢٠٢٦", "2026-01-31T99"],
)
def test_invalid_dates_are_searched_as_words(text):
    query = parse(f"on:{text}", now=NOW)

    assert query.filters == ()
    assert len(query.notes) == 1
    assert query.terms


def test_several_dates_span_the_time_between_them():
    assert spans("after:2026-02 after:2026-01") == [(day("2026-01-01"), None)]
    assert spans("on:2026-01-05,2026-01-02") == [(day("2026-01-02"), day("2026-01-06"))]
    assert len(spans("-on:2026-01-05 -on:2026-01-02")) == 2
