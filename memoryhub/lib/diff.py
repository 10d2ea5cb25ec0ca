"""Two texts as rows of a diff."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal


@dataclass(frozen=True)
class DiffLine:
    """One row: ``mark`` says what became of the line; numbers count from 1, None on the side that lacks it."""

    mark: Literal["same", "del", "ins", "skip"]
    text: str
    old_number: int | None = None
    new_number: int | None = None


def diff_lines(old: str, new: str, *, around: int = 3) -> list[DiffLine]:
    """Compare by line; unchanged stretches longer than twice ``around`` shrink to a "skip" row that counts them."""
    before, after = old.split("\n"), new.split("\n")
    rows: list[DiffLine] = []
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for tag, i, i_end, j, j_end in changes:
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
