"""Compute the SVG geometry of charts.

Every length is a percentage (0-100) of the plot, with y growing downwards as in SVG. Percentages let a chart scale
with the page while its text keeps its size, without scripts or style attributes.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from django.utils.formats import date_format
from django.utils.translation import gettext, gettext_noop, ngettext, pgettext

MAX_SLOTS = 62
MAX_BAR_WIDTH = 5.0
MIN_SEGMENT_WIDTH = 0.4
MAX_DATE_LABELS = 5

# Unit and number of units per bar; the first that needs at most MAX_SLOTS bars is used. Agents' files can contain any
# date, so a range may be thousands of years.
STEPS = (
    ("day", 1), ("week", 1), ("month", 1), ("month", 3), ("year", 1), ("year", 10), ("year", 100), ("year", 1000),
)  # fmt: skip
UNIT_NAMES = {("month", 3): "quarter", ("year", 10): "decade", ("year", 100): "century", ("year", 1000): "millennium"}
# The texts of a chart by its unit: column heading, title and note.
UNIT_TEXTS = {
    "day": (gettext_noop("Day"), gettext_noop("Tokens by day"), gettext_noop("by day of writing (UTC)")),
    "week": (gettext_noop("Week"), gettext_noop("Tokens by week"), gettext_noop("by week of writing (UTC)")),
    "month": (gettext_noop("Month"), gettext_noop("Tokens by month"), gettext_noop("by month of writing (UTC)")),
    "quarter": (
        gettext_noop("Quarter"),
        gettext_noop("Tokens by quarter"),
        gettext_noop("by quarter of writing (UTC)"),
    ),
    "year": (gettext_noop("Year"), gettext_noop("Tokens by year"), gettext_noop("by year of writing (UTC)")),
    "decade": (gettext_noop("Decade"), gettext_noop("Tokens by decade"), gettext_noop("by decade of writing (UTC)")),
    "century": (
        gettext_noop("Century"),
        gettext_noop("Tokens by century"),
        gettext_noop("by century of writing (UTC)"),
    ),
    "millennium": (
        gettext_noop("Millennium"),
        gettext_noop("Tokens by millennium"),
        gettext_noop("by millennium of writing (UTC)"),
    ),
}


@dataclass(frozen=True, slots=True)
class DayTokens:
    """Tokens of one day: active ones, and those replaced by a summary (folded)."""

    day: date
    active: int
    folded: int


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Rect:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar. ``slot``: the full-height column to hover over. ``label``: the date or date range."""

    label: str
    active: int
    folded: int
    slot: Rect
    active_rect: Rect
    folded_rect: Rect


@dataclass(frozen=True, slots=True)
class BarChart:
    """A stacked bar chart of tokens. ``unit``: the time that a bar covers, a key of UNIT_TEXTS."""

    unit: str
    bars: tuple[Bar, ...]
    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]

    @property
    def total(self) -> int:
        return sum(bar.active + bar.folded for bar in self.bars)

    @property
    def unit_label(self) -> str:
        return gettext(UNIT_TEXTS[self.unit][0])

    @property
    def title(self) -> str:
        return gettext(UNIT_TEXTS[self.unit][1])

    @property
    def note(self) -> str:
        return gettext(UNIT_TEXTS[self.unit][2])


@dataclass(frozen=True, slots=True)
class AreaChart:
    """A line and the area under it as SVG path data for the view box "0 0 100 100", and the points as data."""

    line: str
    area: str
    points: tuple[tuple[date, int], ...]
    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True)
class Part:
    key: str
    label: str
    value: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Proportion:
    """Parts of a whole, from left to right. ``whole``: their sum. ``ratio``: original tokens per context token."""

    parts: tuple[Part, ...]
    original: int
    whole: int
    ratio: float | None


@dataclass(frozen=True, slots=True)
class EntryRange:
    """Entries ``first`` to ``last`` (positions, inclusive). ``kind``: folded, consolidated, live or dropped."""

    kind: str
    first: int
    last: int
    label: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A line drawn before the entry at ``position``: the pointer or the start of an epoch."""

    kind: str
    position: int
    label: str


@dataclass(frozen=True, slots=True)
class Segment:
    kind: str
    label: str
    href: str
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class MinimapMark:
    kind: str
    label: str
    at: float


@dataclass(frozen=True, slots=True)
class Minimap:
    segments: tuple[Segment, ...]
    marks: tuple[MinimapMark, ...]
    length: int


def round_ticks(highest: float, intervals: int = 4) -> list[int]:
    """Return at most ``intervals`` + 1 axis values from 0 to at least ``highest``, 1, 2 or 5 × 10ⁿ apart."""
    rough = max(highest, 1) / intervals
    power = 10 ** math.floor(math.log10(rough))
    step = max(1, next(int(power * factor) for factor in (1, 2, 5, 10) if power * factor >= rough))
    return [step * n for n in range(math.ceil(max(highest, 1) / step) + 1)]


def stacked_bars(days: Iterable[DayTokens]) -> BarChart:
    """Return a bar per day, or per the smallest longer unit that needs at most 62 bars.

    Days may be in any order and repeated; days without entries leave a gap.
    """
    items = list(days)
    if not items:
        return BarChart("day", (), (), ())
    unit, size = _step_for(min(item.day for item in items), max(item.day for item in items))
    sums: dict[int, tuple[int, int]] = {}
    for item in items:
        key = _bucket(item.day, unit, size)
        active, folded = sums.get(key, (0, 0))
        sums[key] = (active + item.active, folded + item.folded)
    first, last = min(sums), max(sums)
    values = round_ticks(max(active + folded for active, folded in sums.values()))
    slot_width = 100 / (last - first + 1)
    bars = tuple(
        _bar(_bucket_name(key, unit, size), *sums[key], (key - first) * slot_width, slot_width, values[-1])
        for key in sorted(sums)
    )
    x_ticks = tuple(
        Tick(_rounded((key - first + 0.5) * slot_width), _short_date(_bucket_start(key, unit, size), unit))
        for key in _evenly_spaced(first, last)
    )
    return BarChart(UNIT_NAMES.get((unit, size), unit), bars, _y_ticks(values), x_ticks)


def growth(points: Iterable[tuple[date, int]]) -> AreaChart:
    """Return a chart of non-negative values over time, one point per day.

    If a day is repeated, its last value is used. A single day is drawn as a horizontal line.
    """
    by_day = sorted(dict(points).items())
    if not by_day:
        return AreaChart("", "", (), (), ())
    start, end = by_day[0][0], by_day[-1][0]
    span = (end - start).days
    values = round_ticks(max(value for _, value in by_day))
    coordinates = [
        (_rounded(100 * (day - start).days / span) if span else 0.0, _rounded(100 - 100 * value / values[-1]))
        for day, value in by_day
    ]
    if not span:
        coordinates.append((100.0, coordinates[0][1]))
    line = "M" + " L".join(f"{x:g},{y:g}" for x, y in coordinates)
    unit = _step_for(start, end)[0]
    x_ticks = tuple(
        Tick(
            _rounded(100 * (ordinal - start.toordinal()) / span) if span else 0.0,
            _short_date(date.fromordinal(ordinal), unit),
        )
        for ordinal in _evenly_spaced(start.toordinal(), end.toordinal())
    )
    return AreaChart(line, f"{line} V100 H0 Z", tuple(by_day), _y_ticks(values), x_ticks)


def proportion(*, original: int, active: int, summary: int) -> Proportion:
    """Return how ``original`` tokens divide into active, in summaries and saved; parts of 0 are left out.

    If the summaries are longer than what they replaced, nothing is saved and ``whole`` exceeds ``original``.
    """
    saved = max(0, original - active - summary)
    whole = active + summary + saved
    parts: list[Part] = []
    x = 0.0
    for key, label, value in (
        ("summary", pgettext("tokens", "in summaries"), summary),
        ("active", pgettext("tokens", "active"), active),
        ("saved", pgettext("tokens", "saved"), saved),
    ):
        if value:
            width = 100 * value / whole
            parts.append(Part(key, label, value, _rounded(x), _rounded(width)))
            x += width
    context = active + summary
    return Proportion(tuple(parts), original, whole, original / context if context else None)


def minimap(ranges: Sequence[EntryRange], marks: Sequence[Mark] = (), *, length: int) -> Minimap:
    """Return a strip that shows a session of ``length`` entries.

    Short ranges get a minimum width and may overlap the next one slightly. Raises ValueError if a range or mark is
    outside the session.
    """
    for entry_range in ranges:
        if not 0 <= entry_range.first <= entry_range.last < length:
            raise ValueError(f"range {entry_range.first}-{entry_range.last} is outside a session of {length}")
    for mark in marks:
        if not 0 <= mark.position <= length:
            raise ValueError(f"mark at {mark.position} is outside a session of {length}")
    return Minimap(
        tuple(_segment(entry_range, length) for entry_range in ranges),
        tuple(MinimapMark(mark.kind, mark.label, _rounded(_percentage(mark.position, length))) for mark in marks),
        length,
    )


def _segment(entry_range: EntryRange, length: int) -> Segment:
    width = max(MIN_SEGMENT_WIDTH, _percentage(entry_range.last - entry_range.first + 1, length))
    start = min(_percentage(entry_range.first, length), 100 - width)
    return Segment(entry_range.kind, entry_range.label, entry_range.href, _rounded(start), _rounded(width))


def _percentage(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _rounded(value: float) -> float:
    return round(value, 3)


def _bar(label: str, active: int, folded: int, x: float, slot_width: float, top: int) -> Bar:
    width = min(slot_width * 0.72, MAX_BAR_WIDTH)
    left = x + (slot_width - width) / 2
    active_height, folded_height = 100 * active / top, 100 * folded / top
    return Bar(
        label,
        active,
        folded,
        slot=Rect(_rounded(x), 0.0, _rounded(slot_width), 100.0),
        active_rect=Rect(_rounded(left), _rounded(100 - active_height), _rounded(width), _rounded(active_height)),
        folded_rect=Rect(
            _rounded(left), _rounded(100 - active_height - folded_height), _rounded(width), _rounded(folded_height)
        ),
    )


def _y_ticks(values: list[int]) -> tuple[Tick, ...]:
    return tuple(Tick(_rounded(100 - 100 * value / values[-1]), _short_number(value)) for value in values)


def _short_number(value: int) -> str:
    for size, suffix in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{value / size:g}{suffix}"
    return str(value)


def _evenly_spaced(first: int, last: int) -> list[int]:
    """Return up to MAX_DATE_LABELS integers from ``first`` to ``last``, about evenly spaced."""
    gaps = min(MAX_DATE_LABELS - 1, last - first)
    return [first + round((last - first) * n / gaps) for n in range(gaps + 1)] if gaps else [first]


def _step_for(first: date, last: date) -> tuple[str, int]:
    for unit, size in STEPS:
        if _bucket(last, unit, size) - _bucket(first, unit, size) < MAX_SLOTS:
            return unit, size
    raise AssertionError("9999 years fit into the last step")


def _bucket(day: date, unit: str, size: int) -> int:
    index = {
        "day": day.toordinal(),
        "week": (day.toordinal() - 1) // 7,  # ordinal 1 was a Monday
        "month": day.year * 12 + day.month - 1,
        "year": day.year,
    }
    return index[unit] // size


def _bucket_start(bucket: int, unit: str, size: int) -> date:
    index = bucket * size
    if unit == "day":
        return date.fromordinal(index)
    if unit == "week":
        return date.fromordinal(index * 7 + 1)
    if unit == "month":
        return date(index // 12, index % 12 + 1, 1)
    return date(max(1, index), 1, 1)


def _short_date(day: date, unit: str) -> str:
    if unit == "year":
        return str(day.year)
    return date_format(day, "M Y" if unit == "month" else "j M")


def _bucket_name(bucket: int, unit: str, size: int) -> str:
    start = _bucket_start(bucket, unit, size)
    if unit == "day":
        return date_format(start, "D j M Y")
    if unit == "week":
        return gettext("Week of %(day)s") % {"day": date_format(start, "j M Y")}
    first = _short_date(start, unit)
    if size == 1:
        return first
    if unit == "month":
        words = ngettext("%(count)d month from %(start)s", "%(count)d months from %(start)s", size)
    else:
        words = ngettext("%(count)d year from %(start)s", "%(count)d years from %(start)s", size)
    return words % {"count": size, "start": first}
