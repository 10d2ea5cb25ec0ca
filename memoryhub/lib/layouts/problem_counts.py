"""Report each kind of problem of a file once, with the number of times that it occurred."""

from __future__ import annotations

from collections import Counter

from memoryhub.lib.layouts.records import Outcome, Problem
from memoryhub.lib.validation import brief

MAX_KINDS = 50  # of problems in a file
MAX_NAMED = 30  # types or columns in a problem
EXCERPT_BYTES = 2000
LEFT_OUT = "has records that only the program uses"
UNKNOWN = "has records of unknown types"


class ProblemCounts:
    """The problems of a file.

    ``left_out``: records and parts that only the program uses, by type. ``unknown``: those of an unknown type.
    """

    def __init__(self, path: str) -> None:
        self.left_out: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
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
        found = [
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
        if +self.unknown:
            found.append(Problem(self._path, None, f"{UNKNOWN}: {_named(self.unknown)}", "skipped", "rejected"))
        if +self.left_out:
            found.append(Problem(self._path, None, f"{LEFT_OUT}: {_named(self.left_out)}", "left out", "ignored"))
        return found


def _named(counts: Counter[str]) -> str:
    most = sorted((+counts).items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{brief(name)} ({count:,})" for name, count in most[:MAX_NAMED])
    return f"{named}, …" if len(most) > MAX_NAMED else named
