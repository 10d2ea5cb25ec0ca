"""Finding: the rows of every kind that fit a query, ranked by one reranker on both databases, in one list.

Each kind's index gives at most 150 candidates; ``memoryhub.lib.search.rank`` scores them with the frequencies of what
is searched; lists of several kinds are fused by reciprocal rank (search.md, design 4 and 5), and so is what is near
in meaning (``dense``). Reads only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Model
from django.utils.translation import gettext

from memoryhub.graph.neighbours import expand
from memoryhub.lib.search.factors import OFF, Decay, fuse
from memoryhub.lib.search.hits import Weighted
from memoryhub.lib.search.matching import (
    CANDIDATES,
    SearchTooSlow,
    Wanted,
    best,
    within,
)
from memoryhub.lib.search.query import Query, Term
from memoryhub.lib.search.rank import Measure, Scored, rank
from memoryhub.lib.search.tokenizing import runs_of
from memoryhub.search import semantic
from memoryhub.search.candidates import load_candidates, load_neighbours
from memoryhub.search.counts import Asked, Clock, count_rows_with, count_words
from memoryhub.search.filters import FilteredKind, Scope, load
from sessions_app.models import Workspace

LIMIT = 20
MOST = 200  # results that are ranked; newest first goes on beyond
MILLISECONDS = 130  # for all that a search asks of the database
MAX_RANKED = 60_000  # rows that hold any of the words, beyond which the commonest are left to those that are found
ALL_COVERED = 0.99
STANDING: tuple[str, ...] = (  # what comes first of equals: what was curated, what was said, what is derived from it
    *("memory", "knowledge", "observation", "key_value", "entry"),
    *("history", "summary", "document", "session", "cached"),
)


@dataclass(frozen=True)
class RankOptions:
    """How to search. ``recency``: off, floored, or Grip's own decay by ``decay`` an hour; ``graph``: look further.

    ``dense``: compare meanings too, where the workspace does.
    """

    recency: str = "off"
    decay: float = 0.001
    graph: bool = True
    dense: bool = True


@dataclass(frozen=True)
class Hit:
    """One result. ``score``: higher is better; ``scored`` says how it came about, ``row`` is the row itself."""

    kind: str
    pk: int
    score: float
    scored: Scored
    row: Model

    @property
    def key(self) -> tuple[float, str, int]:
        return -self.score, self.kind, -self.pk


@dataclass
class Found:
    """What a search came to: results best first, the words that counted, and what is to be said of it.

    ``measures``: by kind, what each word is worth there; ``added``: for a word asked for, what the semantic graph
    added with its weight. ``ranked``: how many results there are in all that could be paged through.
    """

    hits: list[Hit]
    measures: dict[str, Measure] = field(default_factory=dict)
    added: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    ranked: int = 0
    has_more: bool = False
    is_partial: bool = False


def find(
    scope: Scope,
    query: Query,
    *,
    now: datetime,
    kinds: Iterable[str] = (),
    wishes: RankOptions | None = None,
    limit: int = LIMIT,
    after: tuple[float, str, int] | None = None,
) -> Found:
    """Return the results of a query, best first, from ``after`` (a hit's ``key``) on.

    At most 200 are ranked. A query without words finds nothing here: see ``listing``. Never waits longer than some
    130 ms for the database; what that leaves out is said in ``notes``.
    """
    wishes = wishes or RankOptions()
    question = semantic.ask(scope, query, now=now) if wishes.dense else None
    clock = Clock(MILLISECONDS)
    counted = count_words(scope, query, kinds, clock)
    query, asked = counted.query, counted.asked
    fittings = [one.fitting for one in asked]
    found = Found([], notes=list(counted.notes), is_partial=any(one.is_partial for one in asked))
    if wishes.graph and scope.only is not None and not query.required:
        found.added = _expansions(scope.only, query, asked)
    lists: dict[str, list[Scored]] = {}
    for one in asked:
        scored = _rank(one, query, found, wishes, now, clock)
        if scored:
            lists[one.fitting.kind.name] = scored
    if question:
        _add_near(lists, question, fittings, query, found, _decay(wishes, now))
    if len(lists) > 1 and "session" in lists:  # a session as such, only where its own words are asked for
        lists["session"] = [one for one in lists["session"] if one.coverage > ALL_COVERED]
    ordered = _ordered(lists)
    if found.is_partial:
        found.notes.append(gettext("The words are so common that not all rows were compared: add rarer ones."))
    found.ranked = len(ordered)
    left = [item for item in ordered if after is None or (-item[1], item[0], -item[2].pk) > after]
    found.hits = _loaded(left[:limit], {one.fitting.kind.name: one.fitting for one in asked})
    found.has_more = len(left) > limit
    return found


def _expansions(workspace: int, query: Query, asked: Sequence[Asked]) -> dict[str, list[tuple[str, float]]]:
    """Return neighbours in the semantic graph of the words that the workspace hardly knows, each with its weight."""
    words = [term.words[0] for term in query.asked if len(term.words) == 1]
    frequency: Counter[str] = Counter()
    for one in asked:
        frequency.update({term.words[0]: count for term, count in one.counts.items() if len(term.words) == 1})
    added: dict[str, list[tuple[str, float]]] = {}
    for near in expand(Workspace(pk=workspace), words, frequency):
        added.setdefault(near.word, []).append((near.related, near.weight))
    return added


def _rank(asked: Asked, query: Query, found: Found, wishes: RankOptions, now: datetime, clock: Clock) -> list[Scored]:
    """Return what a kind has, scored, best first."""
    fitting = asked.fitting
    weights = dict.fromkeys(query.asked, 1.0)
    for near in found.added.values():
        for word, weight in near:
            if words := tuple(runs_of(word)):
                weights.setdefault(Term(words), weight)
    further = [term for term in weights if term not in asked.counts]
    if further:
        [more] = count_rows_with([fitting], further, clock)
        asked.counts |= more.counts
        found.is_partial = found.is_partial or more.is_partial
        fitting = replace(fitting, wanted=replace(fitting.wanted, terms=(*fitting.wanted.terms, *further)))
    terms = [Weighted(term.words, term.is_prefix, weight, asked.counts[term]) for term, weight in weights.items()]
    if not any(term.frequency for term in terms):
        return []
    candidates = load_candidates(fitting.kind, _best(fitting, asked, found, clock))
    is_entry = fitting.kind.name == "entry"
    ranking = rank(
        terms,
        candidates,
        asked.total,
        load=(lambda places: load_neighbours(fitting, places)) if is_entry else None,
        authors={one.author for one in candidates if one.author},
        decay=_decay(wishes, now),
    )
    found.measures[fitting.kind.name] = ranking.measure
    rows = [one for one in ranking.rows if one.coverage] if fitting.kind.name == "document" else ranking.rows
    return rows[:MOST]


def _add_near(
    lists: dict[str, list[Scored]],
    question: semantic.Question,
    fittings: Sequence[FilteredKind],
    query: Query,
    found: Found,
    decay: Decay,
) -> None:
    """Fuse what is near in meaning into the lists that words made."""
    near = semantic.nearest(question, fittings, decay)
    found.notes += [near.note] if near.note else []
    for kind, rows in near.by_kind.items():
        lists[kind] = semantic.fused(lists.get(kind, []), rows)[:MOST]
        found.measures.setdefault(kind, semantic.measure_without_words(query))


def _decay(wishes: RankOptions, now: datetime) -> Decay:
    if wishes.recency == "floored":
        return Decay("floored", now)
    return Decay("grip", now, wishes.decay) if wishes.recency == "grip" else OFF


def _best(fitting: FilteredKind, asked: Asked, found: Found, clock: Clock) -> list[int]:
    wanted = _affordable(fitting.wanted, asked.counts, found)
    try:
        with within(connection, clock.left(90)):
            return best(connection, wanted, total=asked.total, only=fitting.only)
    except SearchTooSlow:
        found.is_partial = True
    try:
        with within(connection, clock.left(50)):
            return list(fitting.matches(window=CANDIDATES).order_by("-pk").values_list("pk", flat=True)[:CANDIDATES])
    except SearchTooSlow:
        return []


def _affordable(wanted: Wanted, counts: Mapping[Term, int], found: Found) -> Wanted:
    """Leave the commonest words out of choosing candidates where too many rows hold them."""
    if wanted.required or sum(counts.get(term, 0) for term in wanted.terms) <= MAX_RANKED:
        return wanted
    kept: list[Term] = []
    seen = 0
    for term in sorted(wanted.terms, key=lambda term: counts.get(term, 0)):
        seen += counts.get(term, 0)
        if kept and seen > MAX_RANKED:
            break
        kept.append(term)
    left = [" ".join(term.words) for term in wanted.terms if term not in kept]
    if left:
        found.notes.append(gettext("So common that they only help to rank: %(words)s.") % {"words": ", ".join(left)})
    return replace(wanted, terms=tuple(kept))


def _ordered(lists: Mapping[str, list[Scored]]) -> list[tuple[str, float, Scored]]:
    """Return the results of all kinds as one list: (kind, score, result); of one kind by its own scores."""
    if len(lists) == 1:
        return [(kind, one.score, one) for kind, scored in lists.items() for one in scored]
    standing = {kind: 1 - 0.01 * place for place, kind in enumerate(STANDING)}  # where all else is the same
    fused = fuse(
        {
            kind: [((kind, one.pk), one.score, standing[kind] * max(one.coverage, one.cosine)) for one in scored]
            for kind, scored in lists.items()
        }
    )
    by_key = {(kind, one.pk): one for kind, scored in lists.items() for one in scored}
    ordered = [(kind, score, by_key[kind, pk]) for (kind, pk), score in fused]
    return sorted(ordered, key=lambda item: (-item[1], item[0], -item[2].pk))[:MOST]


def _loaded(items: Sequence[tuple[str, float, Scored]], fittings: Mapping[str, FilteredKind]) -> list[Hit]:
    rows: dict[tuple[str, int], Any] = {}
    for kind, fitting in fittings.items():
        pks = [one.pk for name, _, one in items if name == kind]
        if pks:
            rows |= {(kind, pk): row for pk, row in load(fitting.kind, pks).items()}
    return [Hit(kind, one.pk, score, one, rows[kind, one.pk]) for kind, score, one in items if (kind, one.pk) in rows]
