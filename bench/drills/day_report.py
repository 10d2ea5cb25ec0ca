"""The figures of bench/drills/day.py: latency by quarter and memory by time, as a table and as a picture."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median, quantiles

QUARTERS, BUCKETS = 4, 60
WIDTH, HEIGHT, LEFT = 720, 200, 60
COLOURS = ["#2563eb", "#dc2626", "#16a34a", "#9333ea", "#d97706", "#0891b2", "#64748b"]
Points = list[tuple[float, float]]  # seconds since the start, value


class Figures:
    """Values by name and time."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.begun = seconds, time.monotonic()
        self.taken: dict[str, Points] = defaultdict(list)  # milliseconds
        self.megabytes: dict[str, Points] = defaultdict(list)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        ended = time.monotonic()
        self.taken[name].append((ended - self.begun, (ended - began) * 1000))

    def note_memory(self, name: str, megabytes: float) -> None:
        self.megabytes[name].append((time.monotonic() - self.begun, megabytes))

    def table(self) -> str:
        """Return one line for each call and process: a column for each quarter."""
        lines = ["p50 / p99 ms by quarter"]
        lines += [f"  {name:<8}" + "".join(self._cell(points)) for name, points in sorted(self.taken.items())]
        lines += ["resident MB by quarter, median"]
        for name, points in sorted(self.megabytes.items()):
            middles = [median(part) if part else 0.0 for part in self._quarters(points)]
            growth = middles[-1] / middles[1] - 1 if middles[1] else 0.0
            lines.append(
                f"  {name:<8}" + "".join(f"{value:18.0f}" for value in middles) + f"   2nd to 4th {growth:+.1%}"
            )
        return "\n".join(lines)

    def _cell(self, points: Points) -> Iterator[str]:
        for part in self._quarters(points):
            late = quantiles(part, n=100)[-1] if len(part) > 1 else sum(part)
            yield f"{median(part) if part else 0:9.0f} /{late:7.0f}"

    def _quarters(self, points: Points) -> list[list[float]]:
        parts: list[list[float]] = [[] for _ in range(QUARTERS)]
        for at, value in points:
            parts[min(QUARTERS - 1, int(at / self.seconds * QUARTERS))].append(value)
        return parts

    def picture(self) -> str:
        """Return an SVG image: memory above, the median latency of each sixtieth of the time below."""
        medians = {name: self._medians(points) for name, points in self.taken.items() if name != "backup"}
        charts = _chart("resident MB", self.megabytes, self.seconds, 0)
        charts += _chart("median ms", medians, self.seconds, HEIGHT + 60)
        size = f'width="{WIDTH + LEFT + 100}" height="{2 * HEIGHT + 140}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">{charts}</svg>\n'
        )

    def _medians(self, points: Points) -> Points:
        buckets: dict[int, list[float]] = defaultdict(list)
        for at, value in points:
            buckets[int(at / self.seconds * BUCKETS)].append(value)
        return [((bucket + 0.5) / BUCKETS * self.seconds, median(part)) for bucket, part in sorted(buckets.items())]


def _chart(title: str, lines: dict[str, Points], seconds: float, top: int) -> str:
    most = max((value for points in lines.values() for _, value in points), default=1.0)
    base = top + 30 + HEIGHT
    parts = [f'<text x="{LEFT}" y="{top + 20}">{title} (0 to {most:.0f}) over {seconds / 60:.0f} minutes</text>']
    parts.append(f'<path d="M{LEFT} {top + 30}V{base}H{LEFT + WIDTH}" fill="none" stroke="#888"/>')
    for number, (name, points) in enumerate(sorted(lines.items())):
        colour = COLOURS[number % len(COLOURS)]
        drawn = " ".join(
            f"{LEFT + min(1.0, at / seconds) * WIDTH:.1f},{base - value / most * HEIGHT:.1f}" for at, value in points
        )
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}"/>')
        parts.append(f'<text x="{LEFT + WIDTH + 8}" y="{top + 45 + 16 * number}" fill="{colour}">{name}</text>')
    return "".join(parts)
