"""Days that people choose, as moments in their zone."""

from __future__ import annotations

from datetime import date, datetime, time

from django.utils import timezone

EARLIEST, LATEST = date(1970, 1, 1), date(2999, 12, 31)  # whatever the zone, databases can hold them


def start_of(day: date) -> datetime:
    """Return the first moment of a day in the current zone."""
    return _moment(day, time.min)


def end_of(day: date) -> datetime:
    """Return the last moment of a day in the current zone."""
    return _moment(day, time.max)


def _moment(day: date, at: time) -> datetime:
    return datetime.combine(max(EARLIEST, min(day, LATEST)), at, tzinfo=timezone.get_current_timezone())
