"""What multiplies an entry's score beside its words: who said it, and when. And the fusing of lists. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar

from memoryhub.lib.search.tokenizing import STOP, runs_of

FUSED = 60  # reciprocal rank fusion's k: how little the first places stand out
LEAST_COVERED = 0.4  # what a place in a list counts for a hit that covers next to nothing of the query
_FLOOR, _FRESH, _DAYS = 0.95, 0.05, 30.0
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Decay:
    """How much newness counts at an (aware) time.

    "floored" takes at most a twentieth: ``.95 + .05 * 2^(-age / 30 days)``. "grip" is Grip's own,
    ``1 / (1 + hours * rate)``, which in time outweighs every word.
    """

    mode: Literal["off", "floored", "grip"] = "off"
    now: datetime | None = None
    rate: float = 0.001


OFF = Decay()


def named_authors(words: Collection[str], authors: Collection[str]) -> frozenset[str]:
    """Return the authors whom a query's (folded) words name, each by a part of the name that no other has.

    Nobody where all are named: then it tells none apart.
    """
    parts = {author: {part for part in runs_of(author) if part not in STOP} for author in authors}
    shared = Counter(part for known in parts.values() for part in known)
    named = {author for author, known in parts.items() if any(shared[part] == 1 for part in known & set(words))}
    return frozenset(named if len(named) < len(parts) else ())


def recency_factor(occurred_at: datetime | None, decay: Decay) -> float:
    """Return the factor of an entry's age, above 0 to 1. Times to come count as now.

    What has no time counts as old as can be in "floored", and as new in "grip", whose factor has no least.
    """
    if decay.mode == "off" or decay.now is None:
        return 1.0
    if occurred_at is None:
        return _FLOOR if decay.mode == "floored" else 1.0
    hours = max(0.0, (decay.now - occurred_at).total_seconds() / 3600)
    if decay.mode == "grip":
        return 1 / (1 + hours * decay.rate)
    return _FLOOR + _FRESH * 2 ** -(hours / 24 / _DAYS)


def fuse(lists: Mapping[str, Sequence[tuple[Key, float, float]]], *, k: int = FUSED) -> list[tuple[Key, float]]:
    """Return the keys of lists whose scores don't compare as one list, best first, by reciprocal rank fusion.

    ``lists``: of each kind (key, score, coverage), best first. A place gives ``(.4 + .6 * coverage) / (k + place)``,
    so that the best hit of a list doesn't come far up where it hardly fits. Of equals the one of the earlier list
    comes first (Cormack et al., "Reciprocal rank fusion outperforms Condorcet", 2009).
    """
    scores: defaultdict[Key, float] = defaultdict(float)
    for hits in lists.values():
        for place, (key, _, coverage) in enumerate(hits, start=1):
            scores[key] += (LEAST_COVERED + (1 - LEAST_COVERED) * coverage) / (k + place)
    return sorted(scores.items(), key=lambda item: -item[1])
