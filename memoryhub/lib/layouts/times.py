"""Parse times in agents' files: ISO 8601, "YYYY-MM-DD HH:MM", and seconds or milliseconds since 1970."""

from __future__ import annotations

import math
import re
from datetime import MAXYEAR, MINYEAR, UTC, datetime, tzinfo
from typing import Any

_PREFIX = re.compile(r"\[(\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?)(?: ?(UTC|Z|[+-]\d\d:?\d\d))?\]")
MILLISECONDS_FROM = 100_000_000_000  # in seconds, this would be the year 5138


def read_time(text: object, zone: tzinfo) -> datetime | None:
    """Return a time in UTC, or None if the text isn't a time. ``zone``: for times without one."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        return _within_calendar((moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def read_moment(value: object, zone: tzinfo) -> datetime | None:
    """Return a time in UTC, or None. It can be text (see ``read_time``), or seconds or milliseconds since 1970."""
    return read_time(value, zone) if isinstance(value, str) else read_epoch(value)[0]


def naive_time(moment: datetime | None, zone: tzinfo) -> str | None:
    """Return a time as nanobot writes it."""
    return moment.astimezone(zone).replace(tzinfo=None).isoformat() if moment else None


def read_epoch(value: Any) -> tuple[datetime | None, str]:
    """Return seconds or milliseconds since 1970 as a time in UTC or None, and a description of the repair or ""."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None, "is not a time" if value is not None else ""
    repair = ""
    if abs(value) >= MILLISECONDS_FROM:
        value, repair = value / 1000, "is in milliseconds"
    try:
        moment = _within_calendar(datetime.fromtimestamp(value, UTC))
    except (ValueError, OverflowError, OSError):
        moment = None
    return (moment, repair) if moment else (None, "is not a time")


def _within_calendar(moment: datetime) -> datetime | None:
    """Return None for datetime's first and last year, which could overflow in another time zone."""
    return moment if MINYEAR < moment.year < MAXYEAR else None


def split_prefix(text: str, zone: tzinfo) -> tuple[str, datetime | None, str]:
    """Split a history entry into ``(time prefix, parsed time, rest)``; the prefix is "" if there is none.

    ``zone``: for a time without UTC or an offset.
    """
    match = _PREFIX.match(text)
    if not match:
        return "", None, text
    offset = "" if match[2] in (None, "UTC", "Z") else match[2]
    moment = read_time(match[1] + offset, UTC if match[2] else zone)
    return match.group(0), moment, text[match.end() :].removeprefix(" ")
