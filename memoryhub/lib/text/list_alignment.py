"""Where a re-read list of records continues the one that is already kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["same", "grown", "pruned", "shorter", "restarted", "rewritten"]


@dataclass(frozen=True)
class Alignment:
    """``append_from``: index of the first new record to add; ``offset``: kept index where the new list begins.

    same: nothing to add. grown: kept is a prefix of new. pruned: a tail of kept (at ``offset``) begins new, the rest
    is added. shorter: new is a part of kept; nothing is lost, nothing added. restarted: nothing in common.
    rewritten: they begin alike and then part, ``append_from`` where.
    """

    verdict: Verdict
    append_from: int
    offset: int = 0


def align(kept: Sequence[str], new: Sequence[str], *, certain: bool) -> Alignment:
    """Align two lists of record hashes; identity is position together with content, never content alone.

    ``certain``: a hash names one record (it covers a time), so that a single shared record is no accident. Without
    it, an overlap of one record beside others counts as chance and the list as restarted: that can only keep a
    record twice, never lose one. Cost: linear in both lists.
    """
    if list(kept) == list(new):
        return Alignment("same", len(new))
    if not kept or (len(new) > len(kept) and list(new[: len(kept)]) == list(kept)):
        return Alignment("grown", len(kept))
    if not new:
        return Alignment("shorter", 0)
    overlap = _overlap(kept, new)
    if overlap and (certain or overlap > 1 or overlap == len(new)):
        return Alignment("pruned", overlap, len(kept) - overlap)
    if (place := _find(kept, new)) is not None:
        return Alignment("shorter", len(new), place)
    alike = next((i for i, (a, b) in enumerate(zip(kept, new, strict=False)) if a != b), 0)
    return Alignment("rewritten", alike) if alike else Alignment("restarted", 0)


def _overlap(kept: Sequence[str], new: Sequence[str]) -> int:
    """Return the length of the longest tail of kept that begins new (prefix function of Knuth, Morris, Pratt)."""
    tail = kept[-len(new) :]
    return _prefix_function([*new, "", *tail])[-1]


def _find(kept: Sequence[str], new: Sequence[str]) -> int | None:
    table = _prefix_function([*new, "", *kept])
    for index, length in enumerate(table):
        if length == len(new):
            return index - 2 * len(new)
    return None


def _prefix_function(items: Sequence[str]) -> list[int]:
    table = [0] * len(items)
    for i in range(1, len(items)):
        length = table[i - 1]
        while length and items[i] != items[length]:
            length = table[length - 1]
        table[i] = length + (items[i] == items[length])
    return table
