"""Score and rank the candidates of a search, in the same way for both databases.

Each term has a weight in its collection (BM25's idf), each entry a share of it, 0 to 1, which rises with its count
and falls with the entry's length (BM25's tf part). Neighbours in the session contribute to the shares that an entry
lacks (see ``neighbour_smoothing``). Adjacent words in the order of the query, an author or a time named in the query,
who said it, at what length and, optionally, recency multiply the score.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from memoryhub.lib.search.factors import OFF, Decay, named_authors, recency_factor
from memoryhub.lib.search.hits import WeightedTerm, find_folded_hits, find_hits, join_adjacent
from memoryhub.lib.search.neighbour_smoothing import (
    Contribution,
    EntryPosition,
    Shares,
    combine_shares,
    missing_shares,
)
from memoryhub.lib.search.question import Period, in_periods
from memoryhub.lib.search.tokenizing import fold

K1, B = 1.0, 0.3  # BM25's saturation of repeated words and normalisation by length
BIGRAM = 0.15  # added to the factor for each two adjacent words of the query
AUTHOR = 1.3  # factor for entries by an author named in the query
BY_USER = 1.25  # factor for what a user said: an assistant repeats the question
LONG_ANSWER = 0.8  # factor for what others said at length: among many words are those of any question
IN_PERIOD = 1.3  # factor for the time named in the query
CHUNK = 720  # characters, about 120 words: longer texts are scored by their best chunk
OTHER_CHUNKS = 0.5  # factor for shares in other chunks than the best
MAX_CHARS = 10_000  # scored per text
MAX_LOADED = 30  # neighbours loaded that aren't candidates themselves
_EPSILON = 1e-9  # preserves the database's order of equal scores
_NO_SHARES: Shares = {}


@dataclass(frozen=True)
class Candidate:
    """A row to score. ``meta``: its author and date as words, searched with the text. ``role``: of a message."""

    pk: int
    text: str
    meta: str = ""
    author: str = ""
    role: str = ""
    position: EntryPosition | None = None
    occurred_at: datetime | None = None


@dataclass(frozen=True)
class HitCounts:
    """The number of hits in each chunk of a text, by index of the term; the chunk length; the number of bigrams."""

    chunks: tuple[Mapping[int, int], ...]
    length: int
    bigrams: int


@dataclass(frozen=True)
class RowShares:
    """A row's own hits: the counts in its best chunk, and its share of each term, 0 to 1, by index of the term."""

    counts: Mapping[int, int]
    shares: Shares
    bigrams: int


@dataclass(frozen=True)
class TermWeights:
    """The weight of each term in a collection, and the average length of its texts in characters."""

    terms: tuple[WeightedTerm, ...]
    weights: tuple[float, ...]
    average_length: float

    def score(self, shares: Shares) -> float:
        """Return the weighted sum of shares."""
        return sum([self.weights[number] * share for number, share in shares.items()])


class Factors(NamedTuple):
    """What multiplies a score: the author and time named in the query, who said it at what length, and recency."""

    author: float = 1.0
    recency: float = 1.0
    speaker: float = 1.0
    period: float = 1.0


NEUTRAL = Factors()


@dataclass(frozen=True)
class ScoredRow:
    """A row with its score and the factors of it.

    ``shares``: the row's own, combined with those of its neighbours. ``coverage``: the part of the query's total
    weight that the row contains, 0 to 1. ``cosine``: the similarity of embeddings, and ``meaning`` what it adds. If
    they were compared, ``score`` is that of the fused lists.
    """

    pk: int
    score: float
    own: RowShares
    shares: Shares
    coverage: float
    factors: Factors = NEUTRAL
    cosine: float = 0.0
    meaning: float = 0.0


@dataclass(frozen=True)
class TermScore:
    """A term's part of a score, before the factors: ``weight`` × (``share`` + ``from_neighbours``)."""

    text: str
    count: int
    frequency: int
    weight: float
    share: float
    from_neighbours: float
    score: float


@dataclass(frozen=True)
class Ranking:
    """Scored rows, best first, and the weights that they were scored with."""

    rows: list[ScoredRow]
    term_weights: TermWeights


Load = Callable[[Sequence[EntryPosition]], Sequence[Candidate]]


def rank(
    terms: Sequence[WeightedTerm],
    candidates: Sequence[Candidate],
    total: int,
    *,
    load: Load | None = None,
    authors: Collection[str] = (),
    decay: Decay = OFF,
    prefers_users: bool = False,
    periods: Sequence[Period] = (),
) -> Ranking:
    """Return candidates, and neighbours that gain a score from them, best first.

    ``candidates``: in the database's order, which is kept among equals; neighbours follow, newest key first.
    ``total``: number of rows in the collection. ``load`` returns the visible rows at up to 30 positions.
    ``authors``: all authors of the collection, to find those named in the query. ``prefers_users``: raise what users
    said, and lower long answers. ``periods``: the times that the query names.
    """
    counts = count_hits(terms, candidates)
    term_weights = weigh_terms(terms, counts, total)
    own_shares = [best_chunk(one, term_weights) for one in counts]
    contributions = {
        row.position: Contribution(term_weights.score(own.shares) * _bigram_factor(own), own.shares, len(row.text))
        for row, own in zip(candidates, own_shares, strict=True)
        if row.position
    }
    speakers = _speakers(candidates)
    missing = missing_shares(contributions, speakers)
    neighbours = load(_largest_gains(missing, contributions, term_weights)) if load and missing else []
    missing = missing_shares(contributions, speakers | _speakers(neighbours)) if neighbours else missing
    own_shares += [best_chunk(one, term_weights) for one in count_hits(terms, neighbours)]
    named = named_authors({word for term in terms if not term.is_added for word in term.words}, authors)
    scored = []
    for order, (row, own) in enumerate(zip([*candidates, *neighbours], own_shares, strict=True)):
        factors = Factors(
            AUTHOR if row.author in named else 1.0,
            recency_factor(row.occurred_at, decay),
            _speaker_factor(row) if prefers_users else 1.0,
            IN_PERIOD if periods and in_periods(row.occurred_at, periods) else 1.0,
        )
        row_missing = missing.get(row.position, _NO_SHARES) if row.position else _NO_SHARES
        minimum = _EPSILON * max(0, len(candidates) - order)
        scored.append(score_row(row.pk, own, row_missing, term_weights, factors, minimum=minimum))
    return Ranking(sorted(scored, key=lambda one: (-one.score, -one.pk)), term_weights)


def _speaker_factor(row: Candidate) -> float:
    if row.role == "user":
        return BY_USER
    return LONG_ANSWER if len(row.text) > CHUNK else 1.0


def _speakers(rows: Sequence[Candidate]) -> dict[EntryPosition, str]:
    return {row.position: f"{row.role} {row.author}" for row in rows if row.position and row.role}


def count_hits(terms: Sequence[WeightedTerm], rows: Sequence[Candidate]) -> list[HitCounts]:
    """Count the hits of each term in chunks of about 120 words; hits in ``meta`` count in every chunk."""
    metas = {meta: _count_meta(terms, meta) for meta in {row.meta for row in rows}}
    return [_count_row(terms, row, metas[row.meta]) for row in rows]


def _count_meta(terms: Sequence[WeightedTerm], meta: str) -> dict[int, int]:
    return {number: len(spans) for number, spans in enumerate(find_hits(terms, meta)) if spans}


def _count_row(terms: Sequence[WeightedTerm], row: Candidate, meta: Mapping[int, int]) -> HitCounts:
    text = row.text[:MAX_CHARS]
    folded = fold(text)
    hits = find_folded_hits(terms, folded, text)
    chunks = [dict(meta) for _ in range(0, max(1, len(folded)), CHUNK)]
    for number, spans in enumerate(hits):
        for start, _ in spans:
            chunk = chunks[start // CHUNK]
            chunk[number] = chunk.get(number, 0) + 1
    in_query = [not (term.is_added or term.is_literal) for term in terms]
    query_spans = [spans for spans, is_own in zip(hits, in_query, strict=True) if is_own]
    bigrams = sum([bool(one and other and join_adjacent(one, other, folded)) for one, other in pairwise(query_spans)])
    return HitCounts(tuple(chunks), min(len(folded), CHUNK) + len(row.meta), bigrams)


def weigh_terms(terms: Sequence[WeightedTerm], counts: Sequence[HitCounts], total: int) -> TermWeights:
    """Return each term's BM25 idf, ``ln(1 + (N - n + 0.5) / (n + 0.5))``, times its own weight.

    N is ``total``, the number of rows in the collection. n is the term's frequency, or the number of candidates that
    contain it if that is larger. The average length is that of the candidates.
    """
    seen = Counter(number for one in counts for number in set().union(*one.chunks))
    weights = []
    for number, term in enumerate(terms):
        frequency = max(term.frequency, seen[number])
        weights.append(term.weight * math.log(1 + (max(total, frequency) - frequency + 0.5) / (frequency + 0.5)))
    length = sum(one.length for one in counts) / len(counts) if counts else 1.0
    return TermWeights(tuple(terms), tuple(weights), max(1.0, length))


def best_chunk(counts: HitCounts, term_weights: TermWeights) -> RowShares:
    """Return the shares of a row's best chunk, raised to half the shares of its other chunks."""
    norm = K1 * (1 - B + B * counts.length / term_weights.average_length)
    chunks = [{number: count / (count + norm) for number, count in chunk.items()} for chunk in counts.chunks]
    if len(chunks) == 1:
        return RowShares(counts.chunks[0], chunks[0], counts.bigrams)
    scores = [term_weights.score(chunk) for chunk in chunks]
    best = scores.index(max(scores))
    shares = dict(chunks[best])
    for number, share in (item for chunk in chunks for item in chunk.items()):
        shares[number] = max(shares.get(number, 0.0), OTHER_CHUNKS * share)
    return RowShares(counts.chunks[best], shares, counts.bigrams)


def score_row(
    pk: int,
    own: RowShares,
    missing: Shares,
    term_weights: TermWeights,
    factors: Factors,
    *,
    minimum: float,
) -> ScoredRow:
    """Return a row with its score.

    ``missing``: see ``missing_shares``. ``minimum``: added to the score.
    """
    shares = combine_shares(own.shares, missing)
    score = term_weights.score(shares) * _bigram_factor(own) * math.prod(factors) + minimum
    covered = sum(
        [term_weights.weights[number] * (number in own.shares or share) for number, share in shares.items()]
    )
    return ScoredRow(pk, score, own, shares, covered / (sum(term_weights.weights) or 1.0), factors)


def explain(row: ScoredRow, term_weights: TermWeights) -> list[TermScore]:
    """Return each term's part of a row's score before the factors, also if it is 0."""
    parts = []
    for number, term in enumerate(term_weights.terms):
        own, share = row.own.shares.get(number, 0.0), row.shares.get(number, 0.0)
        weight = term_weights.weights[number]
        count = row.own.counts.get(number, 0)
        parts.append(TermScore(term.text, count, term.frequency, weight, own, share - own, weight * share))
    return parts


def _bigram_factor(own: RowShares) -> float:
    return 1 + BIGRAM * own.bigrams


def _largest_gains(
    missing: Mapping[EntryPosition, Shares], known: Collection[EntryPosition], term_weights: TermWeights
) -> list[EntryPosition]:
    """Return the positions without a candidate that gain the most from their neighbours, at most MAX_LOADED."""
    gains = {
        position: term_weights.score(combine_shares({}, rest))
        for position, rest in missing.items()
        if position not in known
    }
    return sorted(gains, key=lambda position: (-gains[position], position))[:MAX_LOADED]
