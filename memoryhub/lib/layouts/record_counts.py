"""Count the records of a file that aren't imported as entries, and report each kind once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from memoryhub.lib.layouts.records import REPAIRED, Outcome, Problem
from memoryhub.lib.validation import brief

MAX_NAMED = 30  # types in a problem


@dataclass
class RecordCounts:
    """``left_out``: records and parts that only the program uses, by type. ``unknown``: those of an unknown type.

    ``repaired``, ``noted``: descriptions of what was imported with a change, or is only worth knowing.
    """

    left_out: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)

    def problems(self, path: str) -> list[Problem]:
        def problem(what: str, action: str, outcome: Outcome) -> Problem:
            return Problem(path, None, what, action, outcome)

        found = [problem(f"{what} ({count:,})", REPAIRED, "repaired") for what, count in _most(self.repaired)]
        found += [problem(f"{what} ({count:,})", "imported", "noted") for what, count in _most(self.noted)]
        if self.unknown:
            found.append(problem(f"has records of unknown types: {_named(self.unknown)}", "skipped", "rejected"))
        if self.left_out:
            what = f"has records that only the program uses: {_named(self.left_out)}"
            found.append(problem(what, "left out", "ignored"))
        return found


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_NAMED]


def _named(counts: Counter[str]) -> str:
    named = ", ".join(f"{brief(name)} ({count:,})" for name, count in _most(counts))
    return f"{named}, …" if len(counts) > MAX_NAMED else named
