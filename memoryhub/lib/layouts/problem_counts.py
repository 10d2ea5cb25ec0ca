"""Report each kind of problem of a file once, with the number of times that it occurred and where."""

from __future__ import annotations

from collections import Counter, defaultdict

from memoryhub.lib.layouts.records import Outcome, Problem
from memoryhub.lib.validation import brief

MAX_KINDS = 50  # of problems in a file
MAX_NAMED = 30  # types or columns in a problem
MAX_PLACES = 10  # in a problem
EXCERPT_BYTES = 2000
LEFT_OUT = "has records that only the program uses"
UNKNOWN = "has records of unknown types"
Place = int | str  # the number of a line, or the id of a record
Kind = tuple[str, str, Outcome]


def counted(count: int, one: str, more: str) -> str:
    """Return the sentence for a number: ``one`` for 1, else ``more`` with the number in place of {}."""
    return one if count == 1 else more.format(f"{count:,}")


class ProblemCounts:
    """The problems of a file.

    ``at``: the place of the record that is being read, "" after the last one. ``left_out``: records and parts that
    only the program uses, by type. ``unknown``: those of an unknown type.
    """

    def __init__(self, path: str) -> None:
        self.at: Place = ""
        self.left_out: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self._path = path
        self._counts: Counter[Kind] = Counter()
        self._raw: dict[Kind, bytes] = {}
        self._places: defaultdict[Kind, dict[Place, None]] = defaultdict(dict)

    def add(self, what: str, action: str, outcome: Outcome, raw: bytes = b"", count: int = 1) -> None:
        """Count a problem. ``raw``: an excerpt of the source; that of the first one is reported."""
        kind = (what, action, outcome)
        if kind not in self._counts and len(self._counts) >= MAX_KINDS:
            kind = ("has more problems of other kinds", action, outcome)
        self._counts[kind] += count
        self._raw.setdefault(kind, raw[:EXCERPT_BYTES])
        self._note_place(kind)

    def add_unknown(self, name: str) -> None:
        """Count a record of an unknown type."""
        self.unknown[name] += 1
        self._note_place((UNKNOWN, "skipped", "rejected"))

    def _note_place(self, kind: Kind) -> None:
        if self.at != "" and len(self._places[kind]) <= MAX_PLACES:
            self._places[kind][self.at] = None

    def problems(self) -> list[Problem]:
        found = [self._problem(kind, kind[0], count) for kind, count in self._counts.items()]
        if +self.unknown:
            what = f"{UNKNOWN}: {_named(self.unknown)}"
            found.append(self._problem((UNKNOWN, "skipped", "rejected"), what, 1))
        if +self.left_out:
            found.append(Problem(self._path, None, f"{LEFT_OUT}: {_named(self.left_out)}", "left out", "ignored"))
        return found

    def _problem(self, kind: Kind, what: str, count: int) -> Problem:
        places = list(self._places[kind])
        line = places[0] if len(places) == 1 and isinstance(places[0], int) else None
        details = [f"{count:,} times"] if count > 1 else []
        if places and line is None:
            details.append(_listed(places))
        text = f"{what} ({', '.join(details)})" if details else what
        return Problem(self._path, line, text, kind[1], kind[2], self._raw.get(kind, b""))


def _listed(places: list[Place]) -> str:
    are_lines = isinstance(places[0], int)
    names = [f"{place:,}" if isinstance(place, int) else brief(place) for place in places[:MAX_PLACES]]
    word = ("line" if are_lines else "record") + ("s" if len(names) > 1 else "")
    return f"{word} {', '.join(names)}{', …' if len(places) > MAX_PLACES else ''}"


def _named(counts: Counter[str]) -> str:
    most = sorted((+counts).items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{brief(name)} ({count:,})" for name, count in most[:MAX_NAMED])
    return f"{named}, …" if len(most) > MAX_NAMED else named
