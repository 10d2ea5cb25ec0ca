"""Find where a list of records that was read again continues the stored one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["same", "grown", "pruned", "shorter", "restarted", "rewritten"]


@dataclass(frozen=True)
class Alignment:
    """``append_from``: index of the first new record to add. ``offset``: index in kept where new starts.

    same: nothing to add. grown: kept is a prefix of new. pruned: new starts with the tail of kept at ``offset``.
    shorter: new is contained in kept, nothing to add. restarted: nothing in common. rewritten: a common prefix, then
    different from ``append_from`` on.
    """

    verdict: Verdict
    append_from: int
    offset: int = 0


def align(kept: Sequence[str], new: Sequence[str], *, unique_hashes: bool) -> Alignment:
    """Align two lists of record hashes, in linear time.

    ``unique_hashes``: the hashes include a time, so one shared record proves an overlap. Otherwise an overlap of one
    record is treated as a coincidence and the list as restarted, which can duplicate a record but never lose one.
    """
    if list(kept) == list(new):
        return Alignment("same", len(new))
    if not kept or (len(new) > len(kept) and list(new[: len(kept)]) == list(kept)):
        return Alignment("grown", len(kept))
    if not new:
        return Alignment("shorter", 0)
    overlap = _overlap(kept, new)
    if overlap and (unique_hashes or overlap > 1 or overlap == len(new)):
        return Alignment("pruned", overlap, len(kept) - overlap)
    if (index := _find(kept, new)) is not None:
        return Alignment("shorter", len(new), index)
    prefix = next((i for i, (a, b) in enumerate(zip(kept, new, strict=False)) if a != b), 0)
    return Alignment("rewritten", prefix) if prefix else Alignment("restarted", 0)


def _overlap(kept: Sequence[str], new: Sequence[str]) -> int:
    """Return the length of the longest tail of kept that new starts with (Knuth-Morris-Pratt prefix function)."""
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
