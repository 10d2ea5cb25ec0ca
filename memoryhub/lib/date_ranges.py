"""Days that people choose, as moments in their zone."""

from __future__ import annotations

from datetime import date, datetime, time

from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _

from memoryhub.lib.errors import MemoryHubError

EARLIEST, LATEST = date(1970, 1, 1), date(2999, 12, 31)  # whatever the zone, databases can hold them


class UnreadableDay(MemoryHubError):
    """What was typed is no day of the calendar."""

    code = "unreadable_day"


def parse_day(text: str) -> str:
    """Return a typed day as ISO text, "" for none. Raises UnreadableDay."""
    try:
        found = parse_date(text) if text else None
    except ValueError:  # the 31st of February
        found = None
    if text and found is None:
        raise UnreadableDay(_("Give the date as a day."))
    return found.isoformat() if found else ""


def start_of_day(day: date) -> datetime:
    """Return the first moment of a day in the current zone."""
    return _moment(day, time.min)


def end_of_day(day: date) -> datetime:
    """Return the last moment of a day in the current zone."""
    return _moment(day, time.max)


def _moment(day: date, at: time) -> datetime:
    return datetime.combine(max(EARLIEST, min(day, LATEST)), at, tzinfo=timezone.get_current_timezone())
