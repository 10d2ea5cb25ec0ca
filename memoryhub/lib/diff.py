"""Two texts as rows of a diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

MAX_PAIRS = 1_000_000  # of equal lines; beyond it the commonest lines are not matched


@dataclass(frozen=True)
class DiffLine:
    """One row: ``mark`` says what became of the line; numbers count from 1, None on the side that lacks it."""

    mark: Literal["same", "del", "ins", "skip"]
    text: str
    old_number: int | None = None
    new_number: int | None = None


def line_changes(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """Return difflib's opcodes from one list of lines to another.

    Texts that repeat a line thousands of times would cost the square of that: there the commonest lines are matched
    by their neighbours alone.
    """
    count = Counter(before)
    has_many = sum(count[line] for line in after) > MAX_PAIRS
    return list(SequenceMatcher(None, before, after, autojunk=has_many).get_opcodes())


def diff_lines(old: str, new: str, *, around: int = 3) -> list[DiffLine]:
    """Compare by line; unchanged stretches longer than twice ``around`` shrink to a "skip" row that counts them."""
    before, after = old.split("\n"), new.split("\n")
    rows: list[DiffLine] = []
    for tag, i, i_end, j, j_end in line_changes(before, after):
        if tag == "equal":
            is_last = (i_end, j_end) == (len(before), len(after))
            rows += _equal(before, i, i_end, j, around, is_first=i == j == 0, is_last=is_last)
            continue
        rows += [DiffLine("del", before[k], old_number=k + 1) for k in range(i, i_end)]
        rows += [DiffLine("ins", after[k], new_number=k + 1) for k in range(j, j_end)]
    return rows


def _equal(
    lines: list[str], start: int, end: int, other: int, around: int, *, is_first: bool, is_last: bool
) -> list[DiffLine]:
    rows = [DiffLine("same", lines[k], k + 1, other + k - start + 1) for k in range(start, end)]
    head, tail = (0 if is_first else around), (0 if is_last else around)
    hidden = len(rows) - head - tail
    if hidden <= 1:
        return rows
    return [*rows[:head], DiffLine("skip", f"{hidden} unchanged lines"), *rows[len(rows) - tail :]]
