"""Compute the SVG geometry of proportions and maps of sessions; ``time_charts`` has charts of values over time.

Every length is a percentage (0-100) of the plot, with y growing downwards as in SVG. Percentages let a chart scale
with the page while its text keeps its size, without scripts or style attributes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.translation import pgettext

MIN_SEGMENT_WIDTH = 0.4


@dataclass(frozen=True, slots=True)
class Rect:
    x: float
    y: float
    width: float
    height: float


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


def parts_of(values: Iterable[tuple[str, str, int]]) -> list[Part]:
    """Return keys, labels and values as parts of a bar, from left to right; values of 0 are left out."""
    known = [one for one in values if one[2]]
    whole = sum(value for _, _, value in known)
    parts: list[Part] = []
    x = 0.0
    for key, label, value in known:
        width = 100 * value / whole
        parts.append(Part(key, label, value, rounded(x), rounded(width)))
        x += width
    return parts


def proportion(*, original: int, active: int, summary: int) -> Proportion:
    """Return how ``original`` tokens divide into active, in summaries and saved; parts of 0 are left out.

    If the summaries are longer than what they replaced, nothing is saved and ``whole`` exceeds ``original``.
    """
    saved = max(0, original - active - summary)
    parts = parts_of(
        [
            ("summary", pgettext("tokens", "in summaries"), summary),
            ("active", pgettext("tokens", "active"), active),
            ("saved", pgettext("tokens", "saved"), saved),
        ]
    )
    context = active + summary
    return Proportion(tuple(parts), original, context + saved, original / context if context else None)


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
        tuple(MinimapMark(mark.kind, mark.label, rounded(_percentage(mark.position, length))) for mark in marks),
        length,
    )


def _segment(entry_range: EntryRange, length: int) -> Segment:
    width = max(MIN_SEGMENT_WIDTH, _percentage(entry_range.last - entry_range.first + 1, length))
    start = min(_percentage(entry_range.first, length), 100 - width)
    return Segment(entry_range.kind, entry_range.label, entry_range.href, rounded(start), rounded(width))


def _percentage(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def rounded(value: float) -> float:
    return round(value, 3)
