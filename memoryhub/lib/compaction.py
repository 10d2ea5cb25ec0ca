"""Near-duplicate fact lines, and pairs that contradict each other. Pure.

Likeness is Jaccard's over sets of tokens, as Grip has it (formats.md section 3), made safe: only bullets are
compared, never headings; numbers and negations must agree; scripts without spaces are compared by pairs of
characters. Pairs are found by a prefix filter: two sets as alike as the threshold share one of their rarest tokens.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from memoryhub.lib.facts import FactLine, fact_lines, normal_form
from memoryhub.lib.guard import count_negations, numbers_in

DEFAULT_THRESHOLD = 0.7
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_COMMON = "a an and are as at be by for from has have in is it its of on or that the this to was were will with"
_STOP = frozenset(_COMMON.split())
Pair = tuple[int, int, float]


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
    same, contrary = near_pairs([fact.text for fact in facts], threshold=threshold)
    same = [(i, j, ratio) for i, j, ratio in same if _same_kind(facts[i], facts[j])]
    groups = group_pairs(same, pinned={i for i, fact in enumerate(facts) if fact.line in set(pinned)})
    return Compaction(
        [Cluster(facts[keep], [facts[i] for i in others], ratio) for keep, others, ratio in groups],
        [Contradiction(facts[i], facts[j], ratio) for i, j, ratio in contrary],
    )


def near_pairs(texts: Sequence[str], *, threshold: float = DEFAULT_THRESHOLD) -> tuple[list[Pair], list[Pair]]:
    """Return pairs of texts that say the same, and pairs that contradict each other: (i, j, likeness), i < j.

    ``threshold``: Jaccard's likeness over their tokens, 0 to 1. Best first.
    """
    pairs = sorted(_alike([tokens_of(text) for text in texts], threshold), key=lambda p: (-p[2], p[0], p[1]))
    facts = [(numbers_in(text), count_negations(text)) for text in texts]
    same = [(i, j, ratio) for i, j, ratio in pairs if facts[i] == facts[j]]
    return same, [(i, j, ratio) for i, j, ratio in pairs if facts[i] != facts[j]]


def without_lines(text: str, numbers: Collection[int]) -> str:
    """Return a text without some of its lines, counted from 1."""
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in numbers)


def tokens_of(text: str) -> frozenset[str]:
    """Return the tokens by which facts are compared: words without the commonest, pairs of unspaced characters."""
    folded = normal_form(text)
    pairs = [run[i : i + 2] for run in _UNSPACED.findall(folded) for i in range(max(1, len(run) - 1))]
    words = [word for word in _WORD.findall(_UNSPACED.sub(" ", folded)) if word not in _STOP and not word.isdigit()]
    return frozenset(words + pairs)


def _same_kind(one: FactLine, other: FactLine) -> bool:
    return not one.category or not other.category or one.category == other.category


def _alike(sets: Sequence[frozenset[str]], threshold: float) -> Iterator[Pair]:
    """Yield pairs (i < j) at least as alike as the threshold, with their likeness."""
    frequency = Counter(token for tokens in sets for token in tokens)
    index: defaultdict[str, list[int]] = defaultdict(list)
    for j, tokens in enumerate(sets):
        rarest = sorted(tokens, key=lambda token: (frequency[token], token))
        prefix = rarest[: len(rarest) - math.ceil(threshold * len(rarest)) + 1]
        for i in sorted({i for token in prefix for i in index[token]}):
            ratio = len(sets[i] & tokens) / len(sets[i] | tokens)
            if ratio >= threshold:
                yield i, j, ratio
        for token in prefix:
            index[token].append(j)


def group_pairs(pairs: Sequence[Pair], *, pinned: Collection[int] = ()) -> list[tuple[int, list[int], float]]:
    """Group pairs round the one that stays: (it, those that may go, their least likeness to it), in order.

    The earliest of a group stays, or its earliest pinned one; pinned ones never go.
    """
    partners: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for i, j, ratio in pairs:
        partners[i][j] = partners[j][i] = ratio
    gone: set[int] = set()
    groups = []
    for i in sorted(partners, key=lambda i: (i not in pinned, i)):
        if i in gone:
            continue
        near = {j: ratio for j, ratio in partners[i].items() if j not in gone and j not in pinned}
        near = {j: ratio for j, ratio in near.items() if j > i or i in pinned}
        if near:
            gone |= {i, *near}
            groups.append((i, sorted(near), min(near.values())))
    return sorted(groups)
