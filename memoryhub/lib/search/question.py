"""Read how a question is asked: words that only phrase it, whose words it is about, and the time that it names.

English only. What isn't recognised is searched as words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

PHRASING_WEIGHT = 0.5
# Chosen after reading questions of LoCoMo and LongMemEval; docs/performance.md has the gain.
_PHRASING = """
according ago amount current currently date day days describe described discuss discussed earliest gave get give got
happen happened kind kinds latest likely long mention mentioned mentioning might month months number often order pass
passed recommend recommended remind said say says sort suggest suggested suggestion suggestions tell time times told
total type types week weeks wonder wondered wondering year years
"""
PHRASING_WORDS = frozenset(_PHRASING.split())

_SAYING = (
    "advised|answered|came up|described|explained|gave|listed|mentioned|proposed|provided|recommended|referred|"
    "referring|replied|said|shared|suggested|talked|told|wrote"
)
_SAY = "advise|answer|describe|explain|give|list|mention|propose|provide|recommend|refer|say|share|suggest|tell|write"
_SAID_BY_ASSISTANT = re.compile(
    rf"\b(?:you|assistant|agent|bot)\b(?:\W+\w+){{0,3}}?\W+(?:{_SAYING})\b"
    rf"|\bdid (?:you|the (?:assistant|agent|bot))\b(?:\W+\w+){{0,2}}?\W+(?:{_SAY})\b"
    r"|\b(?:your|assistant's|agent's) (?:last |previous |earlier )?"
    r"(?:advice|answer|explanation|list|recommendation|reply|response|suggestion)s?\b",
    re.IGNORECASE,
)

TOLD_BEFORE, TOLD_AFTER = timedelta(days=3), timedelta(days=21)  # people tell of things before and after they happen
_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = tuple(_MONTH_NAMES.split())
_DAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"
_DAYS = tuple(_DAY_NAMES.split())
_NUMBER_WORDS = "one two three four five six seven eight nine ten eleven twelve"
_NUMBERS: dict[str, float] = {word: number for number, word in enumerate(_NUMBER_WORDS.split(), start=1)}
_NUMBERS |= {"half a": 0.5, "a": 1, "an": 1, "couple of": 2, "few": 3, "several": 4}
_UNIT_DAYS = {"day": 1, "week": 7, "weekend": 7, "month": 30, "year": 365}
_DATE = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{'|'.join(_MONTHS)})\b"
    r"(?:\s+(?P<day2>\d{1,2})(?:st|nd|rd|th)?\b)?,?(?:\s+(?P<year>(?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
_ISO_DATE = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9]|1[0-2])(?:-(?P<day>[0-2]\d|3[01]))?\b")
_YEAR = re.compile(r"\b(?:in|during|of|early|late)\s+(?P<year>(?:19|20)\d\d)\b", re.IGNORECASE)
_AGO = re.compile(
    rf"\b(?:a\s+)?(?P<number>\d{{1,3}}|{'|'.join(_NUMBERS)})\s+(?P<unit>day|week|month|year)s?\s+ago\b", re.IGNORECASE
)
_PAST = re.compile(
    rf"\b(?:last|past)\s+(?P<number>\d{{1,3}}|{'|'.join(_NUMBERS)})\s+(?P<unit>day|week|month|year)s?\b",
    re.IGNORECASE,
)
_LAST = re.compile(
    rf"\b(?P<which>last|past|previous|this)\s+(?P<unit>{'|'.join([*_UNIT_DAYS, *_DAYS])})\b", re.IGNORECASE
)
_NEAR_DAY = re.compile(
    r"\b(?:(?P<before>yesterday|last\s+night)|today|tonight|this\s+(?:morning|afternoon|evening))\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Period:
    """A time from ``start`` to ``end`` (exclusive), in UTC; ``is_yearly``: in every year."""

    start: datetime
    end: datetime
    is_yearly: bool = False

    def includes(self, at: datetime) -> bool:
        if not self.is_yearly:
            return self.start <= at < self.end
        moved = at.replace(year=self.start.year, day=min(at.day, 28) if at.month == 2 else at.day)
        return self.start <= moved < self.end or self.start <= moved + timedelta(days=365) < self.end


def asks_for_assistant(text: str) -> bool:
    """Return whether a question asks for what the assistant said, such as "What did you recommend?"."""
    return bool(_SAID_BY_ASSISTANT.search(text))


def periods(text: str, now: datetime) -> list[Period]:
    """Return the times that a question names, such as "in March", "two months ago" or "last Friday".

    ``now`` (aware) resolves relative times. The periods include some days in which people tell of that time.
    """
    found = [one for match in _DATE.finditer(text) if (one := _date(match, now))]
    found += [_iso_date(match) for match in _ISO_DATE.finditer(text)]
    found = found or [_calendar(int(match["year"]), 1, 12) for match in _YEAR.finditer(text)]
    for match in _AGO.finditer(text):
        number, unit = _number(match["number"]), _UNIT_DAYS[match["unit"].lower()]
        margin = timedelta(days=max(1, unit * min(1, number) / 2))
        found.append(_around(now - timedelta(days=number * unit), margin))
    for match in _PAST.finditer(text):
        unit = _UNIT_DAYS[match["unit"].lower()]
        found.append(Period(now - timedelta(days=_number(match["number"]) * unit), now))
    found += [_last(match, now) for match in _LAST.finditer(text)]
    for match in _NEAR_DAY.finditer(text):
        day = now - timedelta(days=bool(match["before"]))
        found.append(_around(day, timedelta(days=1)))
    return found


def in_periods(at: datetime | None, named: Sequence[Period]) -> bool:
    return at is not None and any(period.includes(at) for period in named)


def _number(text: str) -> float:
    return int(text) if text.isdigit() else _NUMBERS[" ".join(text.lower().split())]


def _around(at: datetime, margin: timedelta) -> Period:
    return Period(at - margin, at + margin)


def _last(match: re.Match[str], now: datetime) -> Period:
    unit = match["unit"].lower()
    if unit in _DAYS:
        ago = (now.weekday() - _DAYS.index(unit)) % 7 or 7
        return _around(now - timedelta(days=ago), timedelta(days=1))
    length = timedelta(days=_UNIT_DAYS[unit])
    return Period(now - length, now) if match["which"].lower() in ("past", "this") else Period(now - 2 * length, now)


def _date(match: re.Match[str], now: datetime) -> Period | None:
    """Return the period of a date or month; without a year, it is in every year. "May" needs a day or year."""
    month, day = _MONTHS.index(match["month"].lower()) + 1, int(match["day"] or match["day2"] or 0)
    is_verb = match["month"] in ("may", "march") and not (day or match["year"])
    year = int(match["year"] or now.year)
    if is_verb or day > 31:
        return None
    period = _day(year, month, day) if day else _calendar(year, month, month)
    return period if match["year"] else Period(period.start, period.end, is_yearly=True)


def _iso_date(match: re.Match[str]) -> Period:
    year, month = int(match["year"]), int(match["month"])
    return _day(year, month, int(match["day"])) if int(match["day"] or 0) else _calendar(year, month, month)


def _day(year: int, month: int, day: int) -> Period:
    start = datetime(year, month, 1, tzinfo=UTC) + timedelta(days=day - 1)
    return Period(start - TOLD_BEFORE, start + timedelta(days=1) + TOLD_AFTER)


def _calendar(year: int, first: int, last: int) -> Period:
    start = datetime(year, first, 1, tzinfo=UTC)
    end = datetime(year + last // 12, last % 12 + 1, 1, tzinfo=UTC)
    return Period(start - TOLD_BEFORE, end + TOLD_AFTER)
