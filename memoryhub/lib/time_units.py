"""Divide time into days, weeks, months and longer units, numbered since year 1, with their names."""

from datetime import date

from django.utils.formats import date_format
from django.utils.translation import gettext, gettext_noop, ngettext

MAX_COLUMNS = 62

# Unit and number of units per column; the first that needs at most MAX_COLUMNS is used. Agents' files can contain any
# date, so a range may be thousands of years.
STEPS = (
    ("day", 1), ("week", 1), ("month", 1), ("month", 3), ("year", 1), ("year", 10), ("year", 100), ("year", 1000),
)  # fmt: skip
UNIT_NAMES = {("month", 3): "quarter", ("year", 10): "decade", ("year", 100): "century", ("year", 1000): "millennium"}
# The texts of a chart by its unit: column heading, title and note.
UNIT_TEXTS = {
    "day": (gettext_noop("Day"), gettext_noop("%(what)s by day"), gettext_noop("by day of writing (UTC)")),
    "week": (gettext_noop("Week"), gettext_noop("%(what)s by week"), gettext_noop("by week of writing (UTC)")),
    "month": (gettext_noop("Month"), gettext_noop("%(what)s by month"), gettext_noop("by month of writing (UTC)")),
    "quarter": (
        gettext_noop("Quarter"),
        gettext_noop("%(what)s by quarter"),
        gettext_noop("by quarter of writing (UTC)"),
    ),
    "year": (gettext_noop("Year"), gettext_noop("%(what)s by year"), gettext_noop("by year of writing (UTC)")),
    "decade": (
        gettext_noop("Decade"),
        gettext_noop("%(what)s by decade"),
        gettext_noop("by decade of writing (UTC)"),
    ),
    "century": (
        gettext_noop("Century"),
        gettext_noop("%(what)s by century"),
        gettext_noop("by century of writing (UTC)"),
    ),
    "millennium": (
        gettext_noop("Millennium"),
        gettext_noop("%(what)s by millennium"),
        gettext_noop("by millennium of writing (UTC)"),
    ),
}


def step_for(first: date, last: date, *, least: str = "day") -> tuple[str, int]:
    """Return the smallest unit from ``least`` on, and how many a column covers, for at most MAX_COLUMNS columns."""
    for unit, size in STEPS[[name for name, _ in STEPS].index(least) :]:
        if bucket(last, unit, size) - bucket(first, unit, size) < MAX_COLUMNS:
            return unit, size
    raise AssertionError("9999 years fit into the last step")


def bucket(day: date, unit: str, size: int) -> int:
    """Return the number of the column that contains a day."""
    index = {
        "day": day.toordinal(),
        "week": (day.toordinal() - 1) // 7,  # ordinal 1 was a Monday
        "month": day.year * 12 + day.month - 1,
        "year": day.year,
    }
    return index[unit] // size


def bucket_start(bucket: int, unit: str, size: int) -> date:
    index = bucket * size
    if unit == "day":
        return date.fromordinal(index)
    if unit == "week":
        return date.fromordinal(index * 7 + 1)
    if unit == "month":
        return date(index // 12, index % 12 + 1, 1)
    return date(max(1, index), 1, 1)


def bucket_end(bucket: int, unit: str, size: int) -> date:
    try:
        after = bucket_start(bucket + 1, unit, size)
    except ValueError:  # the year 10000
        return date.max
    return date.fromordinal(after.toordinal() - 1)


def short_date(day: date, unit: str) -> str:
    if unit == "year":
        return str(day.year)
    return date_format(day, "M Y" if unit == "month" else "j M")


def bucket_name(bucket: int, unit: str, size: int) -> str:
    start = bucket_start(bucket, unit, size)
    if unit == "day":
        return date_format(start, "D j M Y")
    if unit == "week":
        return gettext("Week of %(day)s") % {"day": date_format(start, "j M Y")}
    first = short_date(start, unit)
    if size == 1:
        return first
    if unit == "month":
        words = ngettext("%(count)d month from %(start)s", "%(count)d months from %(start)s", size)
    else:
        words = ngettext("%(count)d year from %(start)s", "%(count)d years from %(start)s", size)
    return words % {"count": size, "start": first}


def parse_range(start: str | None, end: str | None) -> tuple[date | None, date | None]:
    """Return the days of a range from a URL, in order; None for what isn't a date."""
    days = [_day(start), _day(end)]
    if days[0] and days[1] and days[0] > days[1]:
        days.reverse()
    return days[0], days[1]


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text or "")
    except ValueError:
        return None
