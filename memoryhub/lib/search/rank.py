"""The order of what a search found: candidates of either database, scored again the same way. Pure.

Each term of the query has a worth in its collection (BM25's idf) and each entry holds a share of it, 0 to 1, that
grows with its count and shrinks with the entry's length (BM25's tf part). What the entries round it in its session
hold of a term counts for an entry as far as it lacks it (see ``spread``). Words that stand together as in the query,
an author whom it names and, where asked for, newness multiply the score.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from memoryhub.lib.search.factors import OFF, Decay, named_authors, recency_factor
from memoryhub.lib.search.hits import Weighted, follow, hits_in, hits_of
from memoryhub.lib.search.neighbour_smoothing import Giving, Place, Shares, joined, spread
from memoryhub.lib.search.tokenizing import fold

K1, B = 1.2, 0.3  # BM25's: how soon repetition stops to count, and how much length does
BIGRAM = 0.15  # added to the factor for each two words that stand together as in the query
AUTHOR = 1.3  # the factor of entries by an author whom the query names
CHUNK = 720  # characters, about 120 words: longer texts count by their best part
ELSEWHERE = 0.5  # how much of a share counts that another part of a long text holds
MAX_CHARS = 10_000  # of a text; what comes after them counts nothing here
MAX_LOADED = 30  # neighbours that the database didn't find and that are looked up
_LEAST = 1e-9  # keeps the database's order among equals, and where nothing is counted
_NOTHING: Shares = {}


@dataclass(frozen=True)
class Candidate:
    """A row that may be an answer. ``meta``: its author and date in words, searched beside the text."""

    pk: int
    text: str
    meta: str = ""
    author: str = ""
    place: Place | None = None
    occurred_at: datetime | None = None


@dataclass(frozen=True)
class Counted:
    """How often the chunks of a text hold each term, by its number; the length of one; how many bigrams there are."""

    chunks: tuple[Mapping[int, int], ...]
    length: int
    bigrams: int


@dataclass(frozen=True)
class Held:
    """What a row has by itself: the counts of its best chunk, and its share of each term, 0 to 1, by number."""

    counts: Mapping[int, int]
    shares: Shares
    bigrams: int


@dataclass(frozen=True)
class Measure:
    """What counts how much in a collection: the worth of each term, and the usual length in characters."""

    terms: tuple[Weighted, ...]
    worths: tuple[float, ...]
    length: float

    def value(self, shares: Shares) -> float:
        """Return what shares of the terms are worth together."""
        return sum([self.worths[number] * share for number, share in shares.items()])


@dataclass(frozen=True)
class Scored:
    """A row with its score and what that is made of.

    ``shares`` are the row's own together with what its neighbours add; ``coverage`` is how much of the query's worth
    is there, 0 to 1. ``cosine``: how near it is in meaning; where that was compared, ``score`` is
    that of both lists.
    """

    pk: int
    score: float
    held: Held
    shares: Shares
    author: float
    recency: float
    coverage: float
    cosine: float = 0.0


@dataclass(frozen=True)
class Part:
    """What one term gives to a score before the factors: ``worth`` times the row's share and the ``received`` one."""

    text: str
    count: int
    frequency: int
    worth: float
    share: float
    received: float
    score: float


@dataclass(frozen=True)
class Ranking:
    """Rows, best first, and the measure by which they were scored."""

    rows: list[Scored]
    measure: Measure


Load = Callable[[Sequence[Place]], Sequence[Candidate]]


def rank(
    terms: Sequence[Weighted],
    candidates: Sequence[Candidate],
    total: int,
    *,
    load: Load | None = None,
    authors: Collection[str] = (),
    decay: Decay = OFF,
) -> Ranking:
    """Return candidates, and the neighbours to which they lend weight, best first.

    ``candidates``: in the database's order, which they keep among equals; neighbours come after them, the newer key
    first. ``total``: rows of the collection. ``load`` returns those rows at some places, 30 at most, that may be
    shown. ``authors``: all that the collection has, to tell whom the query names.
    """
    counted = count_hits(terms, candidates)
    measure = measure_of(terms, counted, total)
    held = [best_part(one, measure) for one in counted]
    given = {
        row.place: Giving(measure.value(one.shares) * _together(one), one.shares, len(row.text))
        for row, one in zip(candidates, held, strict=True)
        if row.place
    }
    lacking = spread(given)
    more = load(_most_gaining(lacking, given, measure)) if load and lacking else []
    held += [best_part(one, measure) for one in count_hits(terms, more)]
    rows = [*candidates, *more]
    named = named_authors({word for term in terms if term.weight >= 1 for word in term.words}, authors)
    scored = []
    for order, (row, one) in enumerate(zip(rows, held, strict=True)):
        factors = AUTHOR if row.author in named else 1.0, recency_factor(row.occurred_at, decay)
        around = lacking.get(row.place, _NOTHING) if row.place else _NOTHING
        least = _LEAST * max(0, len(candidates) - order)
        scored.append(score_row(row.pk, one, around, measure, factors, least=least))
    return Ranking(sorted(scored, key=lambda one: (-one.score, -one.pk)), measure)


def count_hits(terms: Sequence[Weighted], rows: Sequence[Candidate]) -> list[Counted]:
    """Return how often rows hold each term, in chunks of about 120 words; meta counts in each of them."""
    metas = {meta: _count_meta(terms, meta) for meta in {row.meta for row in rows}}
    return [_count_row(terms, row, metas[row.meta]) for row in rows]


def _count_meta(terms: Sequence[Weighted], meta: str) -> dict[int, int]:
    return {number: len(spans) for number, spans in enumerate(hits_of(terms, meta)) if spans}


def _count_row(terms: Sequence[Weighted], row: Candidate, meta: Mapping[int, int]) -> Counted:
    text = row.text[:MAX_CHARS]
    folded = fold(text)
    hits = hits_in(terms, folded, text)
    chunks = [dict(meta) for _ in range(0, max(1, len(folded)), CHUNK)]
    for number, spans in enumerate(hits):
        for start, _ in spans:
            chunk = chunks[start // CHUNK]
            chunk[number] = chunk.get(number, 0) + 1
    asked = [spans for spans, term in zip(hits, terms, strict=True) if term.weight >= 1]
    bigrams = sum([bool(one and other and follow(one, other, folded)) for one, other in pairwise(asked)])
    return Counted(tuple(chunks), min(len(folded), CHUNK) + len(row.meta), bigrams)


def measure_of(terms: Sequence[Weighted], counted: Sequence[Counted], total: int) -> Measure:
    """Return what each term is worth: BM25's idf, ``ln(1 + (N - n + 0.5) / (n + 0.5))``, times its weight.

    ``total``: N, rows of the collection. n is the term's frequency, or the number of candidates that hold it where
    those are more. The usual length is the candidates' own.
    """
    seen = Counter(number for one in counted for number in set().union(*one.chunks))
    worths = []
    for number, term in enumerate(terms):
        frequency = max(term.frequency, seen[number])
        worths.append(term.weight * math.log(1 + (max(total, frequency) - frequency + 0.5) / (frequency + 0.5)))
    length = sum(one.length for one in counted) / len(counted) if counted else 1.0
    return Measure(tuple(terms), tuple(worths), max(1.0, length))


def best_part(counted: Counted, measure: Measure) -> Held:
    """Return what a row's best chunk holds, and in part what only others of its chunks do."""
    norm = K1 * (1 - B + B * counted.length / measure.length)
    chunks = [{number: count / (count + norm) for number, count in chunk.items()} for chunk in counted.chunks]
    if len(chunks) == 1:
        return Held(counted.chunks[0], chunks[0], counted.bigrams)
    values = [measure.value(chunk) for chunk in chunks]
    best = values.index(max(values))
    shares = dict(chunks[best])
    for number, share in (item for chunk in chunks for item in chunk.items()):
        shares[number] = max(shares.get(number, 0.0), ELSEWHERE * share)
    return Held(counted.chunks[best], shares, counted.bigrams)


def score_row(
    pk: int, held: Held, lacking: Shares, measure: Measure, factors: tuple[float, float], *, least: float
) -> Scored:
    """Return a row with its score.

    ``lacking``: what its neighbours leave it to lack, see ``spread``. ``factors``: the author's and the recency's.
    ``least``: what it scores in any case.
    """
    shares = joined(held.shares, lacking)
    score = measure.value(shares) * _together(held) * math.prod(factors) + least
    there = sum([measure.worths[number] * (number in held.shares or share) for number, share in shares.items()])
    return Scored(pk, score, held, shares, *factors, coverage=there / (sum(measure.worths) or 1.0))


def explain(row: Scored, measure: Measure) -> list[Part]:
    """Return what each term gives to a row's score, before the factors; terms that it has nothing of give 0."""
    parts = []
    for number, term in enumerate(measure.terms):
        own, share = row.held.shares.get(number, 0.0), row.shares.get(number, 0.0)
        worth = measure.worths[number]
        count = row.held.counts.get(number, 0)
        parts.append(Part(term.text, count, term.frequency, worth, own, share - own, worth * share))
    return parts


def _together(held: Held) -> float:
    """Return the factor for words that stand together as in the query."""
    return 1 + BIGRAM * held.bigrams


def _most_gaining(lacking: Mapping[Place, Shares], given: Collection[Place], measure: Measure) -> list[Place]:
    """Return the places without a candidate to which their neighbours give the most, at most MAX_LOADED."""
    gains = {place: measure.value(joined({}, left)) for place, left in lacking.items() if place not in given}
    return sorted(gains, key=lambda place: (-gains[place], place))[:MAX_LOADED]
