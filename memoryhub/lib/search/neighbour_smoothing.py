"""What entries lend to those round them in their session. Pure.

An answer seldom repeats the words of its question: they stand in the turns before and after it. Shares of a term,
0 to 1, are joined as chances are, ``1 - (1 - own) * product(1 - weight * share)``: neighbours fill up what an entry
lacks, and nothing of what it holds already counts twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

Place = tuple[int, int, int]  # session, epoch, position
Shares = Mapping[int, float]  # by number of the term
AFTER = (0.7, 0.4)  # what an entry gives of its shares to the next two positions,
BEFORE = (0.5, 0.3)  # and to the two before it: answers come later
MOST_GIVING = 100  # entries, the best, that give at all
BRIEF = 400  # characters; a longer entry has its own context, and gives less: by the root of the ratio
_REACHED = [(step, weight) for step, weight in enumerate(AFTER, start=1)] + [
    (-step, weight) for step, weight in enumerate(BEFORE, start=1)
]


class Giving(NamedTuple):
    """An entry as one that gives: its score, its shares, and the length of its text in characters."""

    score: float
    shares: Shares
    length: int


def spread(entries: Mapping[Place, Giving]) -> dict[Place, dict[int, float]]:
    """Return for each place near the best entries what their shares leave it to lack of each term: 1 is all of it.

    Places where no entry is given are among those returned.
    """
    lacking: dict[Place, dict[int, float]] = {}
    best = sorted(entries, key=lambda place: (-entries[place].score, place))[:MOST_GIVING]
    for place in best:
        session, epoch, position = place
        _, shares, length = entries[place]
        given = min(1.0, math.sqrt(BRIEF / max(1, length)))
        for step, weight in _REACHED:
            left = lacking.setdefault((session, epoch, position + step), {})
            for number, share in shares.items():
                left[number] = left.get(number, 1.0) * (1 - weight * given * share)
    return lacking


def joined(own: Shares, lacking: Shares) -> Shares:
    """Return an entry's shares of each term together with what its neighbours fill up."""
    if not lacking:
        return own
    shares = dict(own)
    for number, left in lacking.items():
        shares[number] = 1 - (1 - own.get(number, 0.0)) * left
    return shares
