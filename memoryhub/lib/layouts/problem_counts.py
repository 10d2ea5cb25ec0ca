"""Report each kind of problem of a file once, with the number of times that it occurred."""

from __future__ import annotations

from collections import Counter

from memoryhub.lib.layouts.records import Outcome, Problem

MAX_KINDS = 50  # of problems in a file
EXCERPT_BYTES = 2000


class ProblemCounts:
    def __init__(self, path: str) -> None:
        self._path = path
        self._counts: Counter[tuple[str, str, Outcome]] = Counter()
        self._raw: dict[tuple[str, str, Outcome], bytes] = {}

    def add(self, what: str, action: str, outcome: Outcome, raw: bytes = b"", count: int = 1) -> None:
        """Count a problem. ``raw``: an excerpt of the source; that of the first one is reported."""
        kind = (what, action, outcome)
        if kind not in self._counts and len(self._counts) >= MAX_KINDS:
            kind = ("has more problems of other kinds", action, outcome)
        self._counts[kind] += count
        self._raw.setdefault(kind, raw[:EXCERPT_BYTES])

    def problems(self) -> list[Problem]:
        return [
            Problem(
                self._path,
                None,
                what if count == 1 else f"{what} ({count:,} times)",
                action,
                outcome,
                self._raw[what, action, outcome],
            )
            for (what, action, outcome), count in self._counts.items()
        ]
