"""Find near-duplicate and contradicting fact lines in a document."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from memoryhub.lib.text.facts import FactLine, fact_lines
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD, Pair, group_pairs, near_pairs
from memoryhub.lib.text_caches import text_cache


@dataclass(frozen=True)
class Cluster:
    """A fact line and its near-duplicates, with the lowest similarity among them."""

    keep: FactLine
    remove: list[FactLine]
    similarity: float


@dataclass(frozen=True)
class Contradiction:
    """Two lines on the same subject whose numbers or negations differ."""

    one: FactLine
    other: FactLine
    similarity: float


@dataclass(frozen=True)
class Compaction:
    clusters: list[Cluster]
    contradictions: list[Contradiction]

    @property
    def removable(self) -> list[int]:
        """The line numbers of the near-duplicates, in order."""
        return sorted(line.line for cluster in self.clusters for line in cluster.remove)


def find_duplicates(text: str, *, threshold: float = DEFAULT_THRESHOLD, pinned: Collection[int] = ()) -> Compaction:
    """Return the near-duplicates and contradictions among a document's facts.

    ``threshold``: minimum similarity, 0 to 1. ``pinned``: line numbers that are never removed. Each cluster keeps its
    first pinned line, or else its first line.
    """
    facts, same, contradicting = _compare(text, threshold)
    groups = group_pairs(same, pinned={i for i, fact in enumerate(facts) if fact.line in set(pinned)})
    return Compaction(
        [Cluster(facts[keep], [facts[i] for i in others], ratio) for keep, others, ratio in groups],
        [Contradiction(facts[i], facts[j], ratio) for i, j, ratio in contradicting],
    )


@text_cache(8)  # a page of duplicates is opened several times before somebody decides
def _compare(text: str, threshold: float) -> tuple[list[FactLine], list[Pair], list[Pair]]:
    """Return a document's facts, and their near-duplicate and contradicting pairs."""
    facts = fact_lines(text)
    same, contradicting = near_pairs([fact.text for fact in facts], threshold=threshold)
    return facts, [pair for pair in same if _same_kind(facts[pair[0]], facts[pair[1]])], contradicting


def without_lines(text: str, numbers: Collection[int]) -> str:
    """Return a text without the lines with these numbers, counted from 1."""
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in numbers)


def _same_kind(one: FactLine, other: FactLine) -> bool:
    return not one.category or not other.category or one.category == other.category
