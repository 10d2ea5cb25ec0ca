"""Group problems that differ only in numbers, so that thousands of equal ones take one row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

P = TypeVar("P")
Key = tuple[str, str, str]
SHOWN = 3  # of each kind in a terminal; one of what is ignored, since every file has some
_PLACES = re.compile(r" \((?:[\d,]+ times)?(?:, )?(?:(?:lines?|records?) .*)?\)$")
_NUMBER = re.compile(r"\d[\d.,]*")


def kind_of(what: str, action: str, outcome: str) -> Key:
    """Return what problems of a kind have in common: not their places and numbers, and not what was left out."""
    what = what.partition(": ")[0] if outcome == "ignored" else _PLACES.sub("", what)
    return _NUMBER.sub("#", what), _NUMBER.sub("#", action), outcome


def group_problems(problems: Iterable[P], kind: Callable[[P], Key]) -> list[list[P]]:
    """Return problems by kind, in the order of each kind's first one."""
    groups: dict[Key, list[P]] = {}
    for problem in problems:
        groups.setdefault(kind(problem), []).append(problem)
    return list(groups.values())


def problem_lines(problems: Iterable[dict[str, Any]]) -> list[str]:
    """Return problems as lines for a terminal: the first ones of each kind, and the number of the others."""
    lines = []
    for group in group_problems(
        problems, lambda row: kind_of(str(row["what"]), str(row["action"]), str(row["outcome"]))
    ):
        shown = 1 if group[0]["outcome"] == "ignored" else SHOWN
        for row in group[:shown]:
            place = f"{row['file']}, line {row['line']}" if row.get("line") else row["file"]
            lines.append(f"{row['outcome']}: {place}: {row['what']}: {row['action']}")
        if len(group) > shown:
            lines.append(f"{group[0]['outcome']}: and {len(group) - shown:,} more of this kind; --json lists them")
    return lines
