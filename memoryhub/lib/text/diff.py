"""Two texts as rows of a diff."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from django.utils.translation import ngettext

Parts = tuple[tuple[bool, str], ...]
MAX_WORD_CHARS = 2_000  # of a line that is compared word by word
LEAST_LIKENESS = 0.4  # share of the characters that two lines keep; below it they are two lines
MARKS = {"ins": "+", "del": "-", "same": " ", "skip": "…"}
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
MAX_PAIRS = 1_000_000  # of equal lines; beyond it the commonest lines are not matched
MAX_CHAR_PAIRS = 60_000_000  # of lines compared word by word, about a second; beyond it lines are just other lines


@dataclass(frozen=True)
class DiffLine:
    """One row: ``mark`` says what became of the line; numbers count from 1, None on the side that lacks it."""

    mark: Literal["same", "del", "ins", "skip"]
    text: str
    old_number: int | None = None
    new_number: int | None = None
    parts: tuple[tuple[bool, str], ...] = ()  # of a reworded line: whether a piece changed, and the piece


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
    room = MAX_CHAR_PAIRS
    for tag, i, i_end, j, j_end in line_changes(before, after):
        if tag == "equal":
            is_last = (i_end, j_end) == (len(before), len(after))
            rows += _equal(before, i, i_end, j, around, is_first=i == j == 0, is_last=is_last)
            continue
        pairs, room = _reworded(before[i:i_end], after[j:j_end], room)
        olds, news = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        rows += [DiffLine("del", before[k], k + 1, parts=_at(olds, k - i)) for k in range(i, i_end)]
        rows += [DiffLine("ins", after[k], new_number=k + 1, parts=_at(news, k - j)) for k in range(j, j_end)]
    return rows


def _reworded(olds: Sequence[str], news: Sequence[str], room: int) -> tuple[list[tuple[Parts, Parts]], int]:
    """Return each pair of lines as pieces, and how many pairs of characters are left to compare."""
    found: list[tuple[Parts, Parts]] = []
    for old, new in zip(olds, news, strict=False):
        cost = len(old) * len(new)
        found.append(word_changes(old, new) if cost <= room else ((), ()))
        room -= cost if cost <= room else 0
    return found, room


def diff_texts(old: str, new: str) -> list[str]:
    """Return a comparison as lines for a terminal, each with its mark."""
    return [f"{MARKS[line.mark]} {line.text}" for line in diff_lines(old, new)]


def word_changes(old: str, new: str) -> tuple[Parts, Parts]:
    """Return two lines as pieces, each with whether it changed; nothing for lines that share too little."""
    if max(len(old), len(new)) > MAX_WORD_CHARS:
        return (), ()
    one, other = _WORDS.findall(old), _WORDS.findall(new)
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    kept = sum(len("".join(one[i : i + size]).replace(" ", "")) for i, _, size in matcher.get_matching_blocks())
    if kept < LEAST_LIKENESS * max(len(old.replace(" ", "")), len(new.replace(" ", "")), 1):
        return (), ()
    olds, news = [], []
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        olds += [(tag != "equal", "".join(one[i:i_end]))] if i < i_end else []
        news += [(tag != "equal", "".join(other[j:j_end]))] if j < j_end else []
    return tuple(olds), tuple(news)


def _at(pieces: Sequence[Parts], place: int) -> Parts:
    return pieces[place] if place < len(pieces) else ()


def _equal(
    lines: list[str], start: int, end: int, other: int, around: int, *, is_first: bool, is_last: bool
) -> list[DiffLine]:
    rows = [DiffLine("same", lines[k], k + 1, other + k - start + 1) for k in range(start, end)]
    head, tail = (0 if is_first else around), (0 if is_last else around)
    hidden = len(rows) - head - tail
    if hidden <= 1:
        return rows
    words = ngettext("%(count)d unchanged line", "%(count)d unchanged lines", hidden) % {"count": hidden}
    return [*rows[:head], DiffLine("skip", words), *rows[len(rows) - tail :]]
