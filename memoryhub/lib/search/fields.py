"""The fields of the query language, their fixed values, and the parsing of dates."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.search.tokenizing import fold

Label = Promise | str
Bounds = tuple[datetime | None, datetime | None]  # [start, end); None is open


@dataclass(frozen=True)
class Field:
    """A field of the query language.

    ``template``: describes a filter by this field. ``values``: the fixed values with descriptions; empty if any value
    is valid.
    """

    name: str
    purpose: Label
    template: Label = "%(values)s"
    values: Mapping[str, Label] = field(default_factory=dict)


KINDS: dict[str, Label] = {
    "entry": _("all entries of sessions"),
    "message": _("messages"),
    "tool_call": _("tool calls"),
    "tool_result": _("tool results"),
    "context": _("context given to an agent"),
    "summary": _("session summaries"),
    "memory": _("lines of MEMORY.md"),
    "document": _("whole documents"),
    "history": _("entries of HISTORY.md"),
    "knowledge": _("knowledge entries"),
    "observation": _("observations"),
    "key_value": _("key-values"),
    "session": _("sessions"),
    "cached": _("cached responses"),
}
TRAITS: dict[str, Label] = {
    "tool": _("with tool calls"),
    "summary": _("compressed into a summary"),
    "tags": _("with tags"),
    "source": _("with a source"),
    "time": _("with a time"),
    "session": _("with a session"),
    "pin": _("pinned"),
    "review": _("reviewed"),
    "withdrawn": _("withdrawn"),
}
FIELDS = {
    one.name: one
    for one in (
        Field("kind", _("kind of memory"), _("kind: %(values)s"), KINDS),
        Field("session", _("in one session"), _("session: %(values)s")),
        Field("channel", _("in one channel"), _("channel: %(values)s")),
        Field("role", _("role, such as user"), _("role: %(values)s")),
        Field("author", _("who wrote it"), _("author: %(values)s")),
        Field("category", _("in one category"), _("category: %(values)s")),
        Field("tag", _("with a tag"), _("tag: %(values)s")),
        Field("tool", _("name of a tool"), _("tool: %(values)s")),
        Field("source", _("where it comes from"), _("source: %(values)s")),
        Field("before", _("before a day, month or year")),
        Field("after", _("since a day, month or year")),
        Field("on", _("on a day, in a month or year")),
        Field("has", _("has a property"), values=TRAITS),
    )
}
DATE_FIELDS = ("before", "after", "on")
ALIASES = (
    {name: name for name in FIELDS}
    | {name + "s": name for name in ("kind", "session", "channel", "role", "author", "tag", "tool", "source")}
    | {"categories": "category", "in": "kind", "from": "author", "since": "after", "until": "before"}
)
_SINGULAR = {"tags": "tag"}  # of plural fixed values
_OUTER = " ()[]{}.,;!?\u200b\u200e\u200f\ufeff"  # stripped from values
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_YEARS = range(1000, 9999)  # within datetime's limits in any time zone
_AGO = re.compile(r"([0-9]{1,5})([hdwmy])")
_CALENDAR = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[t ].+")


def fixed_value(name: str, text: str) -> str | None:
    """Return the fixed value of a field that a text names in singular or plural, or None."""
    normal = fold(text).strip(_OUTER).replace("-", "_").replace(" ", "_")
    for value in FIELDS[name].values:
        singular = _SINGULAR.get(value, value)
        if normal in (value, singular, f"{singular}s", f"{singular[:-1]}ies"):
            return value
    return None


def date_bounds(name: str, text: str, now: datetime, zone: tzinfo) -> Bounds | None:
    """Return the start and end of a date filter as aware times in UTC, or None if ``text`` isn't a date.

    ``name``: "before" ends at the start of the date; "after" starts there, so it includes the date; "on" is the whole
    day, month or year. ``text``: 2026-01-03, 2026-01, 2026, an ISO time, today, yesterday, a weekday (the last one
    before today), or an age: 12h, 7d, 2w, 3m, 1y. Dates and naive times are in ``zone``.
    """
    try:
        return _bounds(name, fold(text).strip(_OUTER), now.astimezone(zone), zone)
    except (ValueError, OverflowError):
        return None


def _bounds(name: str, text: str, now: datetime, zone: tzinfo) -> Bounds | None:
    moment = _moment(text, now, zone)
    span = _days(text, now.date()) if moment is None else _one_day(moment.date())
    if span is None:
        return None
    start, end = (_start_of(day, zone) for day in span)
    if moment is not None and name != "on":
        start = _in_utc(moment)
    return {"before": (None, start), "after": (start, None)}.get(name, (start, end))


def _moment(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    ago = _AGO.fullmatch(text)
    if ago and ago[2] == "h":
        return now - timedelta(hours=int(ago[1]))
    if not _ISO.fullmatch(text):
        return None
    moment = datetime.fromisoformat(text.upper())
    return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment.astimezone(zone)


def _days(text: str, today: date) -> tuple[date, date] | None:
    """Return the first day of a day, month or year, and the first day after it."""
    day = _named_day(text, today)
    if day is not None:
        return _one_day(day)
    match = _CALENDAR.fullmatch(text)
    if not match:
        return None
    year, month, number = (int(part or 0) for part in match.groups())
    if match[3]:
        return _one_day(date(year, month, number))
    first, last = (month, month) if match[2] else (1, 12)
    return date(year, first, 1), date(year, last, monthrange(year, last)[1]) + timedelta(days=1)


def _one_day(day: date) -> tuple[date, date]:
    return day, day + timedelta(days=1)


def _named_day(text: str, today: date) -> date | None:
    if text in ("today", "yesterday"):
        return today - timedelta(days=int(text == "yesterday"))
    if text in _WEEKDAYS:
        return today - timedelta(days=(today.weekday() - _WEEKDAYS.index(text) - 1) % 7 + 1)
    ago = _AGO.fullmatch(text)
    return _earlier(today, int(ago[1]), ago[2]) if ago else None


def _earlier(day: date, count: int, unit: str) -> date:
    if unit in "dw":
        return day - timedelta(days=count * (7 if unit == "w" else 1))
    months = day.year * 12 + day.month - 1 - count * (12 if unit == "y" else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _start_of(day: date, zone: tzinfo) -> datetime:
    return _in_utc(datetime.combine(day, time.min, zone))


def _in_utc(moment: datetime) -> datetime:
    if moment.year not in _YEARS:
        raise ValueError(moment.year)
    return moment.astimezone(UTC)
