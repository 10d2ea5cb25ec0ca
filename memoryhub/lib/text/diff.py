"""Line and word diffs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from django.utils.translation import ngettext

Parts = tuple[tuple[bool, str], ...]
Opcode = tuple[str, int, int, int, int]
MAX_WORD_CHARS = 2_000  # longer lines aren't compared word by word
MIN_SIMILARITY = 0.4  # share of common characters; less similar lines aren't shown as one reworded line
MARKS = {"ins": "+", "del": "-", "same": " ", "skip": "…"}
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
MAX_PAIRS = 1_000_000  # pairs of equal lines; above this, the most frequent lines are not matched
MAX_CHAR_PAIRS = 60_000_000  # pairs of characters in word diffs, about a second; further lines aren't compared


@dataclass(frozen=True)
class DiffLine:
    """One row of a diff. Line numbers count from 1 and are None on the side that lacks the line.

    ``parts``: of a reworded line, its (is_changed, text) pieces.
    """

    mark: Literal["same", "del", "ins", "skip"]
    text: str
    old_number: int | None = None
    new_number: int | None = None
    parts: tuple[tuple[bool, str], ...] = ()


def line_changes(before: Sequence[str], after: Sequence[str]) -> list[Opcode]:
    """Return difflib's opcodes from one list of lines to another.

    The cost is quadratic in the number of repeats of a line, so autojunk is used for very repetitive texts.
    """
    count = Counter(before)
    is_repetitive = sum(count[line] for line in after) > MAX_PAIRS
    found = [] if is_repetitive else _only_change(before, after, count)
    return found or list(SequenceMatcher(None, before, after, autojunk=is_repetitive).get_opcodes())


def _only_change(before: Sequence[str], after: Sequence[str], count: Mapping[str, int]) -> list[Opcode]:
    """Return difflib's opcodes if all that differs is one run of lines that are nowhere else; otherwise nothing.

    Most revisions are like that, and difflib takes much longer. ``count``: how often each line is in ``before``.
    """
    first = _common(before, after)
    last = _common(before[first:][::-1], after[first:][::-1])
    end, new_end = len(before) - last, len(after) - last
    removed, added = before[first:end], after[first:new_end]
    if not set(removed).isdisjoint(after) or not set(added).isdisjoint(before):
        return []
    if not (removed and added) and last > first and not any(count[line] == 1 for line in before[end:]):
        return []  # the lines after it may repeat those before it
    tag = "replace" if removed and added else "delete" if removed else "insert"
    rows = [
        ("equal", 0, first, 0, first),
        (tag, first, end, first, new_end),
        ("equal", end, len(before), new_end, len(after)),
    ]
    return [row for row in rows if row[1] < row[2] or row[3] < row[4]]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many lines at the beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (line, same) in pairs if line != same), min(len(one), len(other)))


def diff_lines(old: str, new: str, *, around: int = 3) -> list[DiffLine]:
    """Return a diff by line, with ``around`` unchanged lines around each change and "skip" rows for the others."""
    before, after = old.split("\n"), new.split("\n")
    rows: list[DiffLine] = []
    budget = MAX_CHAR_PAIRS
    for tag, i, i_end, j, j_end in line_changes(before, after):
        if tag == "equal":
            is_last = (i_end, j_end) == (len(before), len(after))
            rows += _equal(before, i, i_end, j, around, is_first=i == j == 0, is_last=is_last)
            continue
        pairs, budget = _reworded(before[i:i_end], after[j:j_end], budget)
        olds, news = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        rows += [DiffLine("del", before[k], k + 1, parts=_at(olds, k - i)) for k in range(i, i_end)]
        rows += [DiffLine("ins", after[k], new_number=k + 1, parts=_at(news, k - j)) for k in range(j, j_end)]
    return rows


def reworded_lines(olds: Sequence[str], news: Sequence[str]) -> list[tuple[Parts, Parts]]:
    """Return the word changes of each pair of lines of a change; empty for pairs that are too different."""
    return _reworded(olds, news, MAX_CHAR_PAIRS)[0]


def _reworded(olds: Sequence[str], news: Sequence[str], budget: int) -> tuple[list[tuple[Parts, Parts]], int]:
    """Return the word changes of each pair of lines, and the rest of the budget of character pairs."""
    pairs: list[tuple[Parts, Parts]] = []
    for old, new in zip(olds, news, strict=False):
        cost = len(old) * len(new)
        pairs.append(word_changes(old, new) if cost <= budget else ((), ()))
        budget -= cost if cost <= budget else 0
    return pairs, budget


def diff_texts(old: str, new: str) -> list[str]:
    """Return a diff as lines for a terminal, each prefixed with "+", "-", " " or "…"."""
    return [f"{MARKS[line.mark]} {line.text}" for line in diff_lines(old, new)]


def word_changes(old: str, new: str) -> tuple[Parts, Parts]:
    """Return the (is_changed, text) pieces of two lines; empty tuples if the lines are too different."""
    if max(len(old), len(new)) > MAX_WORD_CHARS:
        return (), ()
    one, other = _WORDS.findall(old), _WORDS.findall(new)
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    common = sum(len("".join(one[i : i + size]).replace(" ", "")) for i, _, size in matcher.get_matching_blocks())
    if common < MIN_SIMILARITY * max(len(old.replace(" ", "")), len(new.replace(" ", "")), 1):
        return (), ()
    olds, news = [], []
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        olds += [(tag != "equal", "".join(one[i:i_end]))] if i < i_end else []
        news += [(tag != "equal", "".join(other[j:j_end]))] if j < j_end else []
    return tuple(olds), tuple(news)


def _at(pieces: Sequence[Parts], index: int) -> Parts:
    return pieces[index] if index < len(pieces) else ()


def _equal(
    lines: list[str], start: int, end: int, other: int, around: int, *, is_first: bool, is_last: bool
) -> list[DiffLine]:
    rows = [DiffLine("same", lines[k], k + 1, other + k - start + 1) for k in range(start, end)]
    head, tail = (0 if is_first else around), (0 if is_last else around)
    hidden = len(rows) - head - tail
    if hidden <= 1:
        return rows
    label = ngettext("%(count)d unchanged line", "%(count)d unchanged lines", hidden) % {"count": hidden}
    return [*rows[:head], DiffLine("skip", label), *rows[len(rows) - tail :]]
