"""Let entries contribute to the scores of their neighbours in a session.

An answer rarely repeats the words of its question, which are in the entries before and after it. Shares of a term, 0
to 1, are combined like probabilities, ``1 - (1 - own) * product(1 - weight * share)``, so neighbours add only what an
entry lacks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

EntryPosition = tuple[int, int, int]  # session, epoch, position
Shares = Mapping[int, float]  # by index of the term
AFTER = (0.7, 0.4)  # weights of an entry's shares for the next two entries
BEFORE = (0.5, 0.3)  # and for the previous two: lower, as answers come later
MAX_CONTRIBUTORS = 100  # only the best entries contribute
SHORT_CHARS = 100  # longer entries have context of their own; their weight falls with the root of the length
SAME_SPEAKER = 0.6  # factor for the next and the previous entry by the same speaker: rarely an answer
_OFFSETS = [(offset, weight) for offset, weight in enumerate(AFTER, start=1)] + [
    (-offset, weight) for offset, weight in enumerate(BEFORE, start=1)
]


class Contribution(NamedTuple):
    """An entry's score, its shares, and the length of its text in characters."""

    score: float
    shares: Shares
    length: int


def missing_shares(
    entries: Mapping[EntryPosition, Contribution], speakers: Mapping[EntryPosition, str] | None = None
) -> dict[EntryPosition, dict[int, float]]:
    """Return for positions near the best entries the part of each term that neighbours leave missing; 1 is all of it.

    The result includes positions that are not in ``entries``. ``speakers``: who speaks at each known position.
    """
    speakers = speakers or {}
    missing: dict[EntryPosition, dict[int, float]] = {}
    best = sorted(entries, key=lambda key: (-entries[key].score, key))[:MAX_CONTRIBUTORS]
    for key in best:
        session, epoch, position = key
        _, shares, length = entries[key]
        factor = min(1.0, math.sqrt(SHORT_CHARS / max(1, length)))
        speaker = speakers.get(key)
        for offset, weight in _OFFSETS:
            neighbour = session, epoch, position + offset
            is_same = abs(offset) == 1 and speaker is not None and speakers.get(neighbour) == speaker
            part = weight * factor * (SAME_SPEAKER if is_same else 1)
            rest = missing.setdefault(neighbour, {})
            for number, share in shares.items():
                rest[number] = rest.get(number, 1.0) * (1 - part * share)
    return missing


def combine_shares(own: Shares, missing: Shares) -> Shares:
    """Return an entry's shares combined with those of its neighbours; see ``missing_shares``."""
    if not missing:
        return own
    shares = dict(own)
    for number, rest in missing.items():
        shares[number] = 1 - (1 - own.get(number, 0.0)) * rest
    return shares
