"""Parse dates from forms and convert them to datetimes in the current time zone."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _

from memoryhub.lib.errors import Invalid

EARLIEST, LATEST = date(1970, 1, 1), date(2999, 12, 31)  # storable in any time zone


def read_day(text: str) -> date | None:
    """Return a date of a request; None if the text isn't one."""
    try:
        return parse_date(text)
    except ValueError:  # 31 February
        return None


def parse_day(text: str) -> str:
    """Return a date from a form as ISO text, or "" if it is empty. Raises Invalid."""
    day = read_day(text)
    if text and day is None:
        raise Invalid(_("Enter a valid date."), code="unreadable_day")
    return day.isoformat() if day else ""


def month_of(day: date, *, back: int = 0) -> tuple[date, date]:
    """Return the first and the last day of a month: that of ``day``, or ``back`` months earlier."""
    year, month = divmod(day.year * 12 + day.month - 1 - back, 12)
    first, following = date(year, month + 1, 1), date(year + (month == 11), (month + 1) % 12 + 1, 1)
    return first, following - timedelta(days=1)


def start_of_day(day: date) -> datetime:
    """Return the first moment of a day in the current time zone."""
    return _moment(day, time.min)


def end_of_day(day: date) -> datetime:
    """Return the last moment of a day in the current time zone."""
    return _moment(day, time.max)


def _moment(day: date, at: time) -> datetime:
    return datetime.combine(max(EARLIEST, min(day, LATEST)), at, tzinfo=timezone.get_current_timezone())
