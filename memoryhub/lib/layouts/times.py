"""Times as agents write them: ISO text, "YYYY-MM-DD HH:MM", seconds or milliseconds since 1970."""

from __future__ import annotations

import math
import re
from datetime import MAXYEAR, MINYEAR, UTC, datetime, tzinfo
from typing import Any

_PREFIX = re.compile(r"\[(\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?)(?: ?(UTC|Z))?\]")
MILLISECONDS_FROM = 100_000_000_000  # as seconds: the year 5138


def read_time(text: object, zone: tzinfo) -> datetime | None:
    """Return a time in UTC; one without a zone is read in ``zone``. None where the text is no time."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        return _within_calendar((moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def read_epoch(value: Any) -> tuple[datetime | None, str]:
    """Return seconds since 1970 as a time in UTC, and a repair in words ("" for none).

    Milliseconds are recognised; anything that is no time gives None.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None, "is no time" if value is not None else ""
    repair = ""
    if abs(value) >= MILLISECONDS_FROM:
        value, repair = value / 1000, "is in milliseconds"
    try:
        moment = _within_calendar(datetime.fromtimestamp(value, UTC))
    except (ValueError, OverflowError, OSError):
        moment = None
    return (moment, repair) if moment else (None, "is no time")


def _within_calendar(moment: datetime) -> datetime | None:
    """Leave out the calendar's first and last year: in another zone such a time may fall outside of it."""
    return moment if MINYEAR < moment.year < MAXYEAR else None


def split_prefix(text: str, zone: tzinfo) -> tuple[str, datetime | None, str]:
    """Split a history entry into ``(prefix as written, its time, the rest)``; prefix "" where there is none."""
    found = _PREFIX.match(text)
    if not found:
        return "", None, text
    when = read_time(found.group(1), UTC if found.group(2) else zone)
    return found.group(0), when, text[found.end() :].removeprefix(" ")
