"""Which texts say nearly the same, and which contradict each other. Pure.

Likeness is Jaccard's over sets of tokens, as Grip has it (formats.md section 3), made safe: numbers and negations
must agree; scripts without spaces are compared by pairs of characters. Pairs are found by a prefix filter: two sets
as alike as the threshold share one of their rarest tokens.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from memoryhub.lib.search.tokenizing import UNSPACED
from memoryhub.lib.text.change_guard import count_negations, numbers_in
from memoryhub.lib.text.facts import normal_form

Pair = tuple[int, int, float]
Signature = tuple[frozenset[tuple[str, int]], int]
DEFAULT_THRESHOLD = 0.7
MAX_COMPARED_CHARS = 4_000  # of a text: longer ones are compared by their beginnings
MAX_COMPARISONS = 1_500_000  # of sets with each other; some seconds
MAX_PARTNERS = 20  # contradictions that one text is named in
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(f"[{UNSPACED}]+")
_COMMON = "a an and are as at be by for from has have in is it its of on or that the this to was were will with"
_STOP = frozenset(_COMMON.split())


@dataclass(frozen=True)
class Alike:
    """What texts have in common, by their places: groups of the same (the one that stays, the others, the least
    likeness among them), and pairs on one subject whose numbers or negations differ.

    ``is_cut``: there was more to compare than the limit allows, so pairs may be missing.
    """

    groups: list[tuple[int, list[int], float]] = field(default_factory=list)
    contrary: list[Pair] = field(default_factory=list)
    is_cut: bool = False


class Comparing:
    """How many comparisons are left. ``is_cut`` once they ran out."""

    def __init__(self, limit: float = math.inf) -> None:
        self.left = limit
        self.is_cut = False

    def take(self, count: int) -> bool:
        """Count comparisons about to be made; False where they are more than are left."""
        self.left -= count
        self.is_cut = self.is_cut or self.left < 0
        return not self.is_cut


def tokens_of(text: str) -> frozenset[str]:
    """Return the tokens by which texts are compared: words without the commonest, pairs of unspaced characters."""
    folded = normal_form(text)
    pairs = [run[i : i + 2] for run in _UNSPACED.findall(folded) for i in range(max(1, len(run) - 1))]
    words = [word for word in _WORD.findall(_UNSPACED.sub(" ", folded)) if word not in _STOP and not word.isdigit()]
    return frozenset(words + pairs)


def near_pairs(texts: Sequence[str], *, threshold: float = DEFAULT_THRESHOLD) -> tuple[list[Pair], list[Pair]]:
    """Return all pairs of texts that say the same, and all that contradict each other: (i, j, likeness), i < j.

    ``threshold``: Jaccard's likeness over their tokens, 0 to 1. Best first. For the texts of one document: of many
    that are nearly the same there are very many pairs, see ``compare_texts``.
    """
    found = alike_pairs([tokens_of(text) for text in texts], threshold)
    pairs = sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1]))
    signed = {place: _signature(texts[place]) for place in {place for i, j, _ in pairs for place in (i, j)}}
    same = [pair for pair in pairs if signed[pair[0]] == signed[pair[1]]]
    return same, [pair for pair in pairs if signed[pair[0]] != signed[pair[1]]]


def alike_pairs(
    sets: Sequence[frozenset[str]], threshold: float, comparing: Comparing | None = None
) -> Iterator[Pair]:
    """Yield pairs (i < j) of sets at least as alike as the threshold (0 to 1), with their likeness.

    Shorter sets come first, so that the index needs only the tokens that a longer one must share: of n tokens the
    rarest ``n - ceil(2t / (1 + t) * n) + 1`` (Xiao et al., "Efficient similarity joins for near duplicate
    detection").
    """
    comparing = comparing or Comparing()
    frequency = Counter(token for tokens in sets for token in tokens)
    rarity = {token: order for order, (_, token) in enumerate(sorted((n, token) for token, n in frequency.items()))}
    sizes = [len(tokens) for tokens in sets]
    index: defaultdict[str, list[int]] = defaultdict(list)
    for j in sorted(range(len(sets)), key=sizes.__getitem__):
        tokens, size = sets[j], sizes[j]
        rarest = sorted(tokens, key=rarity.__getitem__)
        probed = rarest[: size - _at_least(threshold * size) + 1]
        least = threshold * size - 1e-9
        near = {i for token in probed if token in index for i in index[token] if sizes[i] >= least}
        if not comparing.take(len(near) + 1):
            return
        for i in sorted(near):
            shared = len(sets[i] & tokens)
            ratio = shared / (sizes[i] + size - shared)
            if ratio >= threshold:
                yield min(i, j), max(i, j), ratio
        for token in rarest[: size - _at_least(2 * threshold / (1 + threshold) * size) + 1]:
            index[token].append(j)


def _at_least(share: float) -> int:
    return math.ceil(share - 1e-9)  # 0.7 * 10 is a hair above 7


def compare_texts(texts: Sequence[str], *, threshold: float, limit: int = MAX_COMPARISONS) -> Alike:
    """Return which of many texts say the same and which contradict each other; 20,000 take a few seconds.

    ``threshold``: likeness from which two are on one subject, 0 to 1. Of a group the first text stays. Texts of the
    same words are told apart by their numbers and negations first, and only one of each is compared with others: a
    thousand lines that differ in a number make a thousand contradictions, not half a million.
    """
    variants: defaultdict[frozenset[str], dict[Signature, list[int]]] = defaultdict(dict)
    for place, text in enumerate(texts):
        brief = text[:MAX_COMPARED_CHARS]
        if words := tokens_of(brief):
            variants[words].setdefault(_signature(brief), []).append(place)
    comparing = Comparing(limit)
    signed = list(variants.values())
    same = [(places[0], other, 1.0) for found in signed for places in found.values() for other in places[1:]]
    contrary: list[Pair] = []
    for found in signed:
        firsts = sorted(places[0] for places in found.values())
        contrary += [(one, other, 1.0) for one, other in pairwise(firsts)]
    for i, j, ratio in alike_pairs(list(variants), threshold, comparing):
        one, other = signed[i], signed[j]
        shared = one.keys() & other.keys()
        same += [_in_order(one[sign][0], other[sign][0], ratio) for sign in shared]
        if not shared:
            contrary.append(_in_order(_first(one), _first(other), ratio))
    return Alike(group_pairs(same), _few_each(contrary), comparing.is_cut)


def _signature(text: str) -> Signature:
    return frozenset(numbers_in(text).items()), count_negations(text)


def _first(variants: dict[Signature, list[int]]) -> int:
    return min(places[0] for places in variants.values())


def _in_order(one: int, other: int, ratio: float) -> Pair:
    return min(one, other), max(one, other), ratio


def _few_each(pairs: Sequence[Pair]) -> list[Pair]:
    """Return pairs, the likest first, none of whose members is in more than MAX_PARTNERS of them."""
    seen: Counter[int] = Counter()
    kept = []
    for i, j, ratio in sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1])):
        if max(seen[i], seen[j]) < MAX_PARTNERS:
            seen.update((i, j))
            kept.append((i, j, ratio))
    return kept


def group_pairs(pairs: Sequence[Pair], *, pinned: Collection[int] = ()) -> list[tuple[int, list[int], float]]:
    """Group what is alike round the one that stays: (its place, the others, the least likeness among them).

    Each that goes is alike to that one itself. Of a group the first stays, or its first that is ``pinned``: those
    never go.
    """
    partners: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for i, j, ratio in pairs:
        partners[i][j] = partners[j][i] = ratio
    gone: set[int] = set()
    groups = []
    for i in sorted(partners, key=lambda place: (place not in pinned, place)):
        if i in gone:
            continue
        near = {j: ratio for j, ratio in partners[i].items() if j not in gone and j not in pinned}
        near = {j: ratio for j, ratio in near.items() if j > i or i in pinned}
        if near:
            gone |= {i, *near}
            groups.append((i, sorted(near), min(near.values())))
    return sorted(groups)
