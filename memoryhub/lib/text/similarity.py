"""Find texts that are near-duplicates or contradict each other.

Similarity is the Jaccard index of token sets, as in Grip, but texts whose numbers or negations differ contradict each
other. Scripts without spaces are tokenised into character pairs. Candidates are found by a prefix filter: two sets as
similar as the threshold share one of their rarest tokens. A text about "room 12" neither repeats nor contradicts one
about "room 14": the numbers of two names aren't compared.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, pairwise
from operator import or_

from memoryhub.lib.search.tokenizing import UNSPACED
from memoryhub.lib.text.change_guard import count_negations, numbers_in
from memoryhub.lib.text.facts import normal_form
from memoryhub.lib.text.numbers_in_names import names_with_numbers

Pair = tuple[int, int, float]
Values = tuple[frozenset[tuple[str, int]], int]
Names = frozenset[str]
Signature = tuple[Names, Values]
ByValues = dict[Values, list[int]]
ByNames = dict[Names, ByValues]
NO_NAMES: Names = frozenset()
DEFAULT_THRESHOLD = 0.7
MAX_COMPARED_CHARS = 4_000  # only the start of a longer text is compared
MAX_COMPARISONS = 1_500_000  # comparisons of two sets; a few seconds
BITS = 120  # that stand for the tokens of a set
MAX_PARTNERS = 20  # contradictions reported per text
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(f"[{UNSPACED}]+")
_COMMON = "a an and are as at be by for from has have in is it its of on or that the this to was were will with"
_STOP = frozenset(_COMMON.split())


@dataclass(frozen=True)
class SimilarityResult:
    """Near-duplicates and contradictions, by index.

    ``groups``: (the text to keep, its duplicates, the lowest similarity). ``contradictions``: similar texts whose
    numbers or negations differ. ``is_cut``: the limit of comparisons was reached, so pairs may be missing.
    """

    groups: list[tuple[int, list[int], float]] = field(default_factory=list)
    contradictions: list[Pair] = field(default_factory=list)
    is_cut: bool = False


class ComparisonBudget:
    """A limit of comparisons. ``is_cut``: it was exceeded."""

    def __init__(self, limit: float = math.inf) -> None:
        self.remaining = limit
        self.is_cut = False

    def spend(self, count: int) -> bool:
        """Subtract comparisons and return whether the budget allows them."""
        self.remaining -= count
        self.is_cut = self.is_cut or self.remaining < 0
        return not self.is_cut


def tokens_of(text: str) -> frozenset[str]:
    """Return the tokens to compare: words except stop words and numbers, and pairs of unspaced characters."""
    folded = normal_form(text)
    pairs: list[str] = []
    if not folded.isascii():
        pairs = [run[i : i + 2] for run in _UNSPACED.findall(folded) for i in range(max(1, len(run) - 1))]
        folded = _UNSPACED.sub(" ", folded)
    words = [word for word in _WORD.findall(folded) if word not in _STOP and not word.isdigit()]
    return frozenset(words + pairs)


def near_pairs(texts: Sequence[str], *, threshold: float = DEFAULT_THRESHOLD) -> tuple[list[Pair], list[Pair]]:
    """Return the near-duplicate and the contradicting pairs, (i, j, similarity) with i < j, most similar first.

    ``threshold``: minimum Jaccard index, 0 to 1. For many similar texts, use ``compare_texts``: the number of pairs
    is quadratic.
    """
    found = similar_pairs([tokens_of(text) for text in texts], threshold)
    pairs = sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1]))
    signatures = {index: _signature(texts[index]) for index in {index for i, j, _ in pairs for index in (i, j)}}
    about_one = [pair for pair in pairs if _may_be_about_one(*(signatures[index][0] for index in pair[:2]))]
    same = [pair for pair in about_one if signatures[pair[0]][1] == signatures[pair[1]][1]]
    return same, [pair for pair in about_one if signatures[pair[0]][1] != signatures[pair[1]][1]]


def similar_pairs(
    sets: Sequence[frozenset[str]], threshold: float, budget: ComparisonBudget | None = None
) -> Iterator[Pair]:
    """Yield the pairs (i, j, similarity) of sets with a Jaccard index of at least ``threshold`` (0 to 1).

    Sets are processed by size, so of a set's n tokens only the rarest ``n - ceil(2t / (1 + t) * n) + 1`` are indexed
    (Xiao et al., "Efficient similarity joins for near duplicate detection"). Most of the others are told apart by a
    few bits: sets differ in at least as many tokens as their bits do.
    """
    budget = budget or ComparisonBudget()
    frequency = Counter(chain.from_iterable(sets))
    by_rarity = sorted(sorted(frequency), key=frequency.__getitem__)
    rarity = {token: order for order, token in enumerate(by_rarity)}
    sizes = [len(tokens) for tokens in sets]
    rarest_first = [sorted(map(rarity.__getitem__, tokens)) for tokens in sets]
    bit = [1 << order % BITS for order in range(len(rarity))]
    bits = [reduce(or_, map(bit.__getitem__, orders), 0) for orders in rarest_first]
    may_differ = [(1 - threshold) / (1 + threshold) * size + 1e-9 for size in sizes]  # summed for both sets
    index: defaultdict[int, list[int]] = defaultdict(list)
    for j in sorted(range(len(sets)), key=sizes.__getitem__):
        tokens, size, own, most = sets[j], sizes[j], bits[j], may_differ[j]
        rarest = rarest_first[j]
        probed = rarest[: size - _at_least(threshold * size) + 1]
        least = threshold * size - 1e-9
        near = {i for order in probed if order in index for i in index[order] if sizes[i] >= least}
        if not budget.spend(len(near) + 1):
            return
        alike = [i for i in near if (bits[i] ^ own).bit_count() - may_differ[i] <= most]
        for i in sorted(alike):
            shared = len(sets[i] & tokens)
            ratio = shared / (sizes[i] + size - shared)
            if ratio >= threshold:
                yield min(i, j), max(i, j), ratio
        for order in rarest[: size - _at_least(2 * threshold / (1 + threshold) * size) + 1]:
            index[order].append(j)


def _at_least(share: float) -> int:
    return math.ceil(share - 1e-9)  # 0.7 * 10 is slightly above 7


def compare_texts(texts: Sequence[str], *, threshold: float, limit: int = MAX_COMPARISONS) -> SimilarityResult:
    """Return the near-duplicates and contradictions among texts; 20,000 texts take a few seconds.

    ``threshold``: minimum Jaccard index, 0 to 1. Texts with equal tokens are grouped by their numbers and negations
    first, and only one of each group is compared with others: a thousand lines that differ in one number produce a
    thousand contradictions, not half a million.
    """
    variants: defaultdict[frozenset[str], ByNames] = defaultdict(dict)
    for index, text in enumerate(texts):
        start = text[:MAX_COMPARED_CHARS]
        if tokens := tokens_of(start):
            names, values = _signature(start)
            variants[tokens].setdefault(names, {}).setdefault(values, []).append(index)
    budget = ComparisonBudget(limit)
    by_names = list(variants.values())
    alike = [group for one in by_names for group in one.values()]
    same = [(equal[0], other, 1.0) for group in alike for equal in group.values() for other in equal[1:]]
    contradictions: list[Pair] = []
    for group in alike:
        firsts = sorted(equal[0] for equal in group.values())
        contradictions += [(one, other, 1.0) for one, other in pairwise(firsts)]
    equal_tokens = ((one, other, 1.0) for group in by_names for one, other in _without_and_with_names(group, group))
    similar_tokens = (
        (one, other, ratio)
        for i, j, ratio in similar_pairs(list(variants), threshold, budget)
        for one, other in _about_one(by_names[i], by_names[j])
    )
    for one, other, ratio in chain(equal_tokens, similar_tokens):
        shared = one.keys() & other.keys()
        same += [_in_order(one[values][0], other[values][0], ratio) for values in shared]
        if not shared:
            contradictions.append(_in_order(_first(one), _first(other), ratio))
    return SimilarityResult(group_pairs(same), _limit_partners(contradictions), budget.is_cut)


def _about_one(one: ByNames, other: ByNames) -> Iterator[tuple[ByValues, ByValues]]:
    """Yield the texts of two groups that may be about one thing."""
    yield from ((one[names], other[names]) for names in one.keys() & other.keys())
    yield from _without_and_with_names(one, other)
    yield from _without_and_with_names(other, one)


def _without_and_with_names(one: ByNames, other: ByNames) -> Iterator[tuple[ByValues, ByValues]]:
    if NO_NAMES in one:
        yield from ((one[NO_NAMES], texts) for names, texts in other.items() if names)


def _may_be_about_one(names: Names, others: Names) -> bool:
    return names == others or not names or not others


def _signature(text: str) -> Signature:
    """Return the names with numbers that a text is about, and its numbers and negations."""
    names = frozenset(_name_key(name) for name in names_with_numbers(text))
    return names, (frozenset(numbers_in(text).items()), count_negations(text))


def _name_key(name: str) -> str:
    """Return the words and numbers of a name: "Release 1.8" and "the release of 1.8" are one."""
    return " ".join([*sorted(tokens_of(name)), *sorted(numbers_in(name))])


def _first(group: dict[Values, list[int]]) -> int:
    return min(equal[0] for equal in group.values())


def _in_order(one: int, other: int, ratio: float) -> Pair:
    return min(one, other), max(one, other), ratio


def _limit_partners(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs, most similar first, with each text in at most MAX_PARTNERS of them."""
    seen: Counter[int] = Counter()
    kept = []
    for i, j, ratio in sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1])):
        if max(seen[i], seen[j]) < MAX_PARTNERS:
            seen.update((i, j))
            kept.append((i, j, ratio))
    return kept


def group_pairs(pairs: Sequence[Pair], *, pinned: Collection[int] = ()) -> list[tuple[int, list[int], float]]:
    """Group pairs into (the index to keep, its duplicates, the lowest similarity).

    Each duplicate is paired with the kept index itself. That is the first pinned index of a group, or else its first;
    pinned indexes are never duplicates.
    """
    partners: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for i, j, ratio in pairs:
        partners[i][j] = partners[j][i] = ratio
    grouped: set[int] = set()
    groups = []
    for i in sorted(partners, key=lambda index: (index not in pinned, index)):
        if i in grouped:
            continue
        duplicates = {j: ratio for j, ratio in partners[i].items() if j not in grouped and j not in pinned}
        duplicates = {j: ratio for j, ratio in duplicates.items() if j > i or i in pinned}
        if duplicates:
            grouped |= {i, *duplicates}
            groups.append((i, sorted(duplicates), min(duplicates.values())))
    return sorted(groups)
