"""Three-way merge by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memoryhub.lib.text.diff import line_changes

Change = tuple[int, int, list[str]]  # base lines [start, end) and their replacement


@dataclass(frozen=True)
class Merge:
    """The merged text, or None and the number of conflicts."""

    text: str | None
    conflict_count: int


def merge_texts(base: str, ours: str, theirs: str) -> Merge:
    """Merge two changed versions of ``base`` by line, as diff3 does. Overlapping changes are conflicts.

    Of different additions in the same place, both are kept, ours first.
    """
    if ours == theirs or theirs == base:
        return Merge(ours, 0)
    if ours == base:
        return Merge(theirs, 0)
    if not base.strip():
        own = ours.rstrip("\n").split("\n")
        return Merge("\n".join([*own, *(line for line in theirs.split("\n") if line and line not in own)]) + "\n", 0)
    lines = base.split("\n")
    left, right = _changes(lines, ours.split("\n")), _changes(lines, theirs.split("\n"))
    right = [_without_repeats(change, left) for change in right]
    conflicts = sum(_conflict(one, other) for one in left for other in right)
    if conflicts:
        return Merge(None, conflicts)
    return Merge(_applied(lines, left, right), 0)


def overlay_texts(base: str, ours: str, theirs: str) -> str:
    """Merge like ``merge_texts``, but resolve conflicts in favour of ``theirs``.

    Used to preview a proposal on top of other people's changes.
    """
    merged = merge_texts(base, ours, theirs)
    if merged.text is not None:
        return merged.text
    lines = base.split("\n")
    right = _changes(lines, theirs.split("\n"))
    left: list[Change] = []
    for change in _changes(lines, ours.split("\n")):
        over = [other for other in right if _conflict(change, other)]
        pieces = _by_line(change) if over else [change]
        left += [one for one in pieces if not any(_conflict(one, other) for other in over)]
    return _applied(lines, left, [_without_repeats(change, left) for change in right])


def overlapping(base: str, ours: str, changes: Sequence[Change]) -> list[bool]:
    """Tell for each change of ``base`` whether ``ours`` changes the same lines, so that it can't be merged.

    Additions in the same place can.
    """
    if not base.strip():
        return [False] * len(changes)
    left = _changes(base.split("\n"), ours.split("\n"))
    return [any(_conflict(one, change) for one in left) for change in changes]


def _by_line(change: Change) -> list[Change]:
    """Return a change of several lines as one of each line, if none is added or removed."""
    start, end, new = change
    if end - start != len(new):
        return [change]
    return [(start + at, start + at + 1, [line]) for at, line in enumerate(new)]


def _applied(lines: Sequence[str], left: Sequence[Change], right: Sequence[Change]) -> str:
    merged: list[str] = []
    copied = 0
    for start, end, new in sorted(_unique(left, right), key=lambda change: change[:2]):
        merged += [*lines[copied:start], *new]
        copied = end
    return "\n".join([*merged, *lines[copied:]])


def _changes(base: Sequence[str], other: Sequence[str]) -> list[Change]:
    return [
        (start, end, list(other[from_line:to_line]))
        for tag, start, end, from_line, to_line in line_changes(base, other)
        if tag != "equal"
    ]


def _without_repeats(change: Change, others: Sequence[Change]) -> Change:
    """Return an addition without the lines that the other side adds in the same place."""
    start, end, new = change
    repeated = {line for i, j, lines in others if i == j == start == end for line in lines}
    return (start, end, [line for line in new if line not in repeated]) if start == end else change


def _conflict(one: Change, other: Change) -> bool:
    return one != other and one[0] < other[1] and other[0] < one[1]


def _unique(left: Sequence[Change], right: Sequence[Change]) -> Iterator[Change]:
    yield from left
    yield from (change for change in right if change not in left)
