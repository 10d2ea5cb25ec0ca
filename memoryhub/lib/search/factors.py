"""Factors of a search score other than words (author, recency), and the fusion of ranked lists."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar

from memoryhub.lib.search.tokenizing import STOP_WORDS, split_words

RRF_K = 60  # k of reciprocal rank fusion: the higher, the smaller the advantage of the first ranks
MIN_COVERAGE_FACTOR = 0.4  # factor for a hit that covers almost nothing of the query
_FLOOR, _FRESH, _DAYS = 0.95, 0.05, 30.0
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Decay:
    """How recency affects the score at the aware time ``now``.

    "floored" subtracts at most 5 %: ``.95 + .05 * 2^(-age / 30 days)``. "grip" is Grip's formula,
    ``1 / (1 + hours * rate)``, which eventually outweighs every word.
    """

    mode: Literal["off", "floored", "grip"] = "off"
    now: datetime | None = None
    rate: float = 0.001


OFF = Decay()


def named_authors(words: Collection[str], authors: Collection[str]) -> frozenset[str]:
    """Return the authors named by a query's folded words, each by a part of the name that is unique among authors.

    If all authors are named, the result is empty.
    """
    names = {author: {part for part in split_words(author) if part not in STOP_WORDS} for author in authors}
    shared = Counter(part for parts in names.values() for part in parts)
    named = {author for author, parts in names.items() if any(shared[part] == 1 for part in parts & set(words))}
    return frozenset(named if len(named) < len(names) else ())


def recency_factor(occurred_at: datetime | None, decay: Decay) -> float:
    """Return the factor for an entry's age, above 0 and up to 1. Future times count as now.

    Entries without a time get the minimum of "floored", and 1 with "grip", which has no minimum.
    """
    if decay.mode == "off" or decay.now is None:
        return 1.0
    if occurred_at is None:
        return _FLOOR if decay.mode == "floored" else 1.0
    hours = max(0.0, (decay.now - occurred_at).total_seconds() / 3600)
    if decay.mode == "grip":
        return 1 / (1 + hours * decay.rate)
    return _FLOOR + _FRESH * 2 ** -(hours / 24 / _DAYS)


def fuse(lists: Mapping[str, Sequence[tuple[Key, float, float]]]) -> list[tuple[Key, float]]:
    """Merge lists whose scores aren't comparable by reciprocal rank fusion, and return (key, score), best first.

    ``lists``: by kind, (key, score, coverage), best first. A hit scores ``(.4 + .6 * coverage) / (60 + rank)``, so
    the best hit of a list ranks low if it covers little of the query. Equals keep the order of the lists (Cormack
    et al., "Reciprocal rank fusion outperforms Condorcet", 2009).
    """
    scores: defaultdict[Key, float] = defaultdict(float)
    for hits in lists.values():
        for rank, (key, _, coverage) in enumerate(hits, start=1):
            scores[key] += (MIN_COVERAGE_FACTOR + (1 - MIN_COVERAGE_FACTOR) * coverage) / (RRF_K + rank)
    return sorted(scores.items(), key=lambda item: -item[1])
