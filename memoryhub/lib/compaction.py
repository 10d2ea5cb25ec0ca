"""Near-duplicate fact lines of a document, and pairs that contradict each other. Pure.

Only bullets are compared, never headings; ``memoryhub.lib.likeness`` says which are alike.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from memoryhub.lib.facts import FactLine, fact_lines
from memoryhub.lib.likeness import alike_pairs, contradict, group_pairs, tokens_of

DEFAULT_THRESHOLD = 0.7


@dataclass(frozen=True)
class Cluster:
    """Lines that say the same: the one that stays and those that may go, with the least likeness among them."""

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
        """The line numbers that may go, in order."""
        return sorted(line.line for cluster in self.clusters for line in cluster.remove)


def find_duplicates(text: str, *, threshold: float = DEFAULT_THRESHOLD, pinned: Collection[int] = ()) -> Compaction:
    """Return groups of near-duplicates and contradictions among a document's facts.

    ``threshold``: likeness from which lines are one, 0 to 1. ``pinned``: line numbers that never go. Of a group the
    first line stays, or its first pinned one.
    """
    facts = fact_lines(text)
    sets = [tokens_of(fact.text) for fact in facts]
    pairs = sorted(alike_pairs(sets, threshold), key=lambda pair: (-pair[2], pair[0], pair[1]))
    same = [(i, j, ratio) for i, j, ratio in pairs if _agree(facts[i], facts[j])]
    contrary = [
        Contradiction(facts[i], facts[j], ratio) for i, j, ratio in pairs if contradict(facts[i].text, facts[j].text)
    ]
    fixed = {place for place, fact in enumerate(facts) if fact.line in pinned}
    groups = [Cluster(facts[i], [facts[j] for j in others], least) for i, others, least in group_pairs(same, fixed)]
    return Compaction(groups, contrary)


def without_lines(text: str, numbers: Collection[int]) -> str:
    """Return a text without some of its lines, counted from 1."""
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in numbers)


def _agree(one: FactLine, other: FactLine) -> bool:
    same_kind = not one.category or not other.category or one.category == other.category
    return same_kind and not contradict(one.text, other.text)
