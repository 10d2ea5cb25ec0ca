"""Compute charts of values over time: columns by day, week, month or longer, and the geometry of their SVG.

Every length is a percentage (0-100) of the plot, with y growing downwards as in SVG. Percentages let a chart scale
with the page while its text keeps its size, without style attributes. Days are in UTC.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from memoryhub.lib.charts import Rect, rounded
from memoryhub.lib.tables.formulas import guard
from memoryhub.lib.time_units import (
    UNIT_NAMES,
    UNIT_TEXTS,
    bucket,
    bucket_end,
    bucket_name,
    bucket_start,
    short_date,
    step_for,
)

MAX_BAR_WIDTH = 5.0
MAX_DATE_LABELS = 5

SUM, LAST, MEAN = "sum", "last", "mean"  # how a column combines the values of its days
Range = tuple[date | None, date | None]


@dataclass(frozen=True, slots=True)
class Series:
    """Values by day. ``key``: its colour (``data-series`` in charts.css)."""

    key: str
    label: str
    values: Mapping[date, float]


@dataclass(frozen=True, slots=True)
class Event:
    """Runs or imports of a day, marked on the axis. ``kind``: run or import."""

    kind: str
    day: date
    label: str


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    label: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A day, week or longer from ``first`` to ``last``. ``at``: its centre. ``cells``: a text for each series.

    ``note``: the runs and imports of these days.
    """

    label: str
    first: date
    last: date
    at: float
    cells: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """A series as bars, or as SVG path data for the view box "0 0 100 100"."""

    key: str
    label: str
    bars: tuple[Rect, ...] = ()
    line: str = ""
    area: str = ""

    @property
    def bars_html(self) -> SafeString:
        """The bars as SVG. Templates would take ten times as long for many charts."""
        bars = ((bar.x, bar.y, bar.width, bar.height) for bar in self.bars)
        return format_html_join("", '<rect x="{}%" y="{}%" width="{}%" height="{}%"/>', bars)


@dataclass(frozen=True, slots=True)
class TimeChart:
    """A chart. ``unit``: the time that a column covers, a key of UNIT_TEXTS; ``width``: of a column.

    ``values``: those of each column and series, None where there is none.
    """

    what: str
    how: str
    unit: str = "day"
    width: float = 100.0
    columns: tuple[Column, ...] = ()
    values: tuple[tuple[float | None, ...], ...] = ()
    shapes: tuple[Shape, ...] = ()
    y_ticks: tuple[Tick, ...] = ()
    x_ticks: tuple[Tick, ...] = ()
    events: tuple[Tick, ...] = field(default=())

    @property
    def rows_html(self) -> SafeString:
        """The columns as rows of a table."""
        row = '<tr data-at="{}" data-from="{}"{}><th scope="row">{}</th>{}</tr>'
        cells = [[*column.cells, *([column.note] if self.events else [])] for column in self.columns]
        return format_html_join(
            "",
            row,
            (
                (one.at, one.first.isoformat(), _last_day(one), one.label, _cells(texts))
                for one, texts in zip(self.columns, cells, strict=True)
            ),
        )

    @property
    def unit_label(self) -> str:
        return gettext(UNIT_TEXTS[self.unit][0])

    @property
    def title(self) -> str:
        return self.what if self.how == LAST else gettext(UNIT_TEXTS[self.unit][1]) % {"what": self.what}

    @property
    def note(self) -> str:
        return gettext(UNIT_TEXTS[self.unit][2])


@dataclass(frozen=True, slots=True)
class ChartLinks:
    """Where a chart leads. ``open``: the rows of some days, with FROM, TO, AFTER (the day after) or MONTH.

    ``range``: the page that takes ``from`` and ``to``; ``csv``: the figures.
    """

    csv: str = ""
    open: str = ""
    range: str = ""


def time_chart(
    what: str,
    series: Sequence[Series],
    *,
    how: str = SUM,
    between: Range = (None, None),
    events: Iterable[Event] = (),
    unit: str = "",
    least: str = "day",
) -> TimeChart:
    """Return a chart with a column per day, or per the smallest longer unit that needs at most 62 columns.

    SUM draws stacked bars. LAST and MEAN draw lines; LAST carries a value forward until the next one. ``between``
    limits the days and is the range shown; events outside it are left out. ``unit``: "", "$" or "s". ``least``: the
    smallest unit: day, week or month.
    """
    values = [_within(one.values, between, how) for one in series]
    days = [day for one in values for day in one]
    if not days:
        return TimeChart(what, how)
    shown = (between[0] or min(days), max(between[1] or max(days), max(days)))
    step = step_for(*shown, least=least)
    first, last = bucket(shown[0], *step), bucket(shown[1], *step)
    notes = _notes(events, shown, step)
    rows = _rows(values, how, step, notes.keys() | ({last} if how == LAST else set()))
    ticks = round_ticks(_highest(rows, how), is_whole=unit != "$")
    width = 100 / (last - first + 1)
    columns = tuple(
        Column(
            bucket_name(key, *step),
            max(shown[0], bucket_start(key, *step)),
            min(shown[1], bucket_end(key, *step)),
            rounded((key - first + 0.5) * width),
            tuple(_cell(value, unit) for value in row),
            ", ".join(label for label, _ in notes.get(key, ())),
        )
        for key, row in rows.items()
    )
    draw = _bars if how == SUM else _lines
    return TimeChart(
        what,
        how,
        unit=UNIT_NAMES.get(step, step[0]),
        width=rounded(width),
        columns=columns,
        values=tuple(rows.values()),
        shapes=tuple(draw(series, rows, first, width, ticks[-1])),
        y_ticks=tuple(Tick(rounded(100 - 100 * value / ticks[-1]), short_number(value, unit)) for value in ticks),
        x_ticks=tuple(
            Tick(rounded((key - first + 0.5) * width), short_date(bucket_start(key, *step), step[0]))
            for key in _evenly_spaced(first, last)
        ),
        events=tuple(
            Tick(rounded((key - first + 0.5) * width), label, kind)
            for key, several in notes.items()
            for label, kind in several
        ),
    )


def chart_csv(chart: TimeChart) -> str:
    """Return the columns of a chart as CSV: first and last day, a value for each series, runs and imports."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(["from", "to", *(guard(shape.label) for shape in chart.shapes), "events"])
    for column, row in zip(chart.columns, chart.values, strict=True):
        numbers = ["" if value is None else f"{value:.6g}" if value % 1 else f"{value:.0f}" for value in row]
        writer.writerow([column.first.isoformat(), column.last.isoformat(), *numbers, guard(column.note)])
    return out.getvalue()


def running_total(changes: Mapping[date, float]) -> dict[date, float]:
    """Return the sum of all changes up to each day."""
    total, found = 0.0, {}
    for day in sorted(changes):
        total += changes[day]
        found[day] = total
    return found


def round_ticks(highest: float, *, is_whole: bool = True) -> list[float]:
    """Return at most five axis values from 0 to at least ``highest``, 1, 2 or 5 × 10ⁿ apart."""
    least, slack = (1.0, 0.0) if is_whole else (0.0001, 1e-9)
    rough = max(highest, least) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = max(least, next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - slack)))
    return [step * n for n in range(math.ceil(max(highest, least) / step - slack) + 1)]


def short_number(value: float, unit: str = "") -> str:
    """Return a number for an axis: 1.5M, $0.02, 30 s."""
    text = f"{value:.6g}"
    for size, suffix in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            text = f"{value / size:.6g}{suffix}"
            break
    return {"$": f"${text}", "s": f"{text} s"}.get(unit, text)


def _last_day(column: Column) -> SafeString | str:
    return format_html(' data-to="{}"', column.last.isoformat()) if column.last != column.first else ""


def _cells(texts: Sequence[str]) -> SafeString:
    return format_html_join("", "<td>{}</td>", ((text,) for text in texts))


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return "—"
    if unit == "$":
        return f"${value:,.4f}"
    return f"{value:,.1f} s" if unit == "s" else f"{value:,.0f}"


def _within(values: Mapping[date, float], between: Range, how: str) -> dict[date, float]:
    """Return the values between two days; with LAST, the first day has the value from before it."""
    start, end = between
    found = {day: value for day, value in values.items() if (not start or day >= start) and (not end or day <= end)}
    earlier = [day for day in values if start and day < start]
    if how == LAST and start and earlier and start not in found:
        found[start] = values[max(earlier)]
    return found


def _rows(
    series: Sequence[Mapping[date, float]], how: str, step: tuple[str, int], more: Iterable[int]
) -> dict[int, tuple[float | None, ...]]:
    """Return a value for each series by column, in order. ``more``: columns that have a row even without a value."""
    sums: list[dict[int, list[float]]] = []
    for values in series:
        found: dict[int, list[float]] = {}
        for day in sorted(values):
            found.setdefault(bucket(day, *step), []).append(values[day])
        sums.append(found)
    keys = sorted({key for found in sums for key in found} | set(more))
    latest: list[float | None] = [None] * len(series)
    rows: dict[int, tuple[float | None, ...]] = {}
    for key in keys:
        row: list[float | None] = []
        for place, found in enumerate(sums):
            several = found.get(key)
            if how == LAST:
                latest[place] = several[-1] if several else latest[place]
                row.append(latest[place])
            elif how == MEAN:
                row.append(sum(several) / len(several) if several else None)
            else:
                row.append(sum(several or [0]))
        rows[key] = tuple(row)
    return rows


def _notes(
    events: Iterable[Event], shown: tuple[date, date], step: tuple[str, int]
) -> dict[int, list[tuple[str, str]]]:
    """Return label and kind of the events within the range by column."""
    notes: dict[int, list[tuple[str, str]]] = {}
    for event in sorted(events, key=lambda one: (one.day, one.kind)):
        if shown[0] <= event.day <= shown[1]:
            notes.setdefault(bucket(event.day, *step), []).append((event.label, event.kind))
    return notes


def _highest(rows: Mapping[int, Sequence[float | None]], how: str) -> float:
    totals = [
        sum(value or 0 for value in row) if how == SUM else max(value or 0 for value in row) for row in rows.values()
    ]
    return max(totals)


def _bars(
    series: Sequence[Series], rows: Mapping[int, Sequence[float | None]], first: int, width: float, top: float
) -> Iterable[Shape]:
    """Yield each series as bars, stacked on those before it."""
    bar = min(width * 0.72, MAX_BAR_WIDTH)
    below = dict.fromkeys(rows, 0.0)
    for place, one in enumerate(series):
        bars = []
        for key, row in rows.items():
            height = 100 * (row[place] or 0) / top
            below[key] += height
            if height:
                x = (key - first + 0.5) * width - bar / 2
                bars.append(Rect(rounded(x), rounded(100 - below[key]), rounded(bar), rounded(height)))
        yield Shape(one.key, one.label, bars=tuple(bars))


def _lines(
    series: Sequence[Series], rows: Mapping[int, Sequence[float | None]], first: int, width: float, top: float
) -> Iterable[Shape]:
    """Yield each series as a line through the centres of its columns; a single value is a horizontal line."""
    for place, one in enumerate(series):
        points = [
            (rounded((key - first + 0.5) * width), rounded(100 - 100 * value / top))
            for key, row in rows.items()
            if (value := row[place]) is not None
        ]
        if len(points) == 1:
            points = [(0.0, points[0][1]), (100.0, points[0][1])]
        line = "M" + " L".join(f"{x:g},{y:g}" for x, y in points) if points else ""
        area = f"{line} V100 H{points[0][0]:g} Z" if points else ""
        yield Shape(one.key, one.label, line=line, area=area)


def _evenly_spaced(first: int, last: int) -> list[int]:
    """Return up to MAX_DATE_LABELS integers from ``first`` to ``last``, about evenly spaced."""
    gaps = min(MAX_DATE_LABELS - 1, last - first)
    return [first + round((last - first) * n / gaps) for n in range(gaps + 1)] if gaps else [first]
