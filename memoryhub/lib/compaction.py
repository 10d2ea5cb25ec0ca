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
    pairs = sorted(_alike(sets, threshold), key=lambda pair: (-pair[2], pair[0], pair[1]))
    same = [(i, j, ratio) for i, j, ratio in pairs if _agree(facts[i], facts[j])]
    contrary = [Contradiction(facts[i], facts[j], ratio) for i, j, ratio in pairs if _contradict(facts[i], facts[j])]
    return Compaction(_clusters(facts, same, set(pinned)), contrary)


def without_lines(text: str, numbers: Collection[int]) -> str:
    """Return a text without some of its lines, counted from 1."""
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in numbers)


def tokens_of(text: str) -> frozenset[str]:
    """Return the tokens by which facts are compared: words without the commonest, pairs of unspaced characters."""
    folded = normal_form(text)
    pairs = [run[i : i + 2] for run in _UNSPACED.findall(folded) for i in range(max(1, len(run) - 1))]
    words = [word for word in _WORD.findall(_UNSPACED.sub(" ", folded)) if word not in _STOP and not word.isdigit()]
    return frozenset(words + pairs)


def _agree(one: FactLine, other: FactLine) -> bool:
    same_kind = not one.category or not other.category or one.category == other.category
    return same_kind and not _contradict(one, other)


def _contradict(one: FactLine, other: FactLine) -> bool:
    return numbers_in(one.text) != numbers_in(other.text) or count_negations(one.text) != count_negations(other.text)


def _alike(sets: Sequence[frozenset[str]], threshold: float) -> Iterator[tuple[int, int, float]]:
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


def _clusters(facts: Sequence[FactLine], pairs: Sequence[tuple[int, int, float]], pinned: set[int]) -> list[Cluster]:
    """Group lines round the one that stays: each that goes is as alike to that one as the threshold says."""
    partners: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for i, j, ratio in pairs:
        partners[i][j] = partners[j][i] = ratio
    order = sorted(partners, key=lambda i: (facts[i].line not in pinned, i))
    gone: set[int] = set()
    clusters = []
    for i in order:
        if i in gone:
            continue
        near = {j: ratio for j, ratio in partners[i].items() if j not in gone and facts[j].line not in pinned}
        near = {j: ratio for j, ratio in near.items() if j > i or facts[i].line in pinned}
        if near:
            gone |= {i, *near}
            clusters.append(Cluster(facts[i], [facts[j] for j in sorted(near)], min(near.values())))
    return sorted(clusters, key=lambda cluster: cluster.keep.line)
