"""Search ranking: the rows of every kind that match a query, as one list, the same on both databases.

Each kind's index yields at most 150 candidates, which ``lib.search.scoring`` scores with document frequencies from
the searched scope. Lists of several kinds, and semantic matches, are merged by reciprocal rank fusion. Reads only.
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
from memoryhub.lib.metrics import count_search
from memoryhub.lib.search.factors import OFF, Decay, fuse
from memoryhub.lib.search.hits import WeightedTerm
from memoryhub.lib.search.matching import CANDIDATES, IndexQuery, SearchTooSlow, all_matches, best_matches, time_limit
from memoryhub.lib.search.query import Query, Term
from memoryhub.lib.search.question import PHRASING_WEIGHT, asks_for_assistant, periods
from memoryhub.lib.search.scoring import ScoredRow, TermWeights, rank
from memoryhub.lib.search.tokenizing import split_words
from memoryhub.search import semantic
from memoryhub.search.candidates import load_candidates, load_neighbours
from memoryhub.search.conversations import near_sessions, rank_conversations
from memoryhub.search.correcting import CORRECTED_WEIGHT, Corrections, correct, with_corrections
from memoryhub.search.counts import INCOMPLETE, Clock, KindQuery, KnownCounts, count_rows_by_term, count_words
from memoryhub.search.exact_text import with_exact_rows, with_exact_texts
from memoryhub.search.filters import FilteredKind, Scope, load
from memoryhub.search.grouping import best_of_sessions
from sessions_app.models import Entry, Workspace

LIMIT = 20
MOST = 200  # ranked results; listing newest first has no limit
MILLISECONDS = 130  # of database time for one search
BEST_MILLISECONDS, NEWEST_MILLISECONDS = 90, 50  # of these, to select each kind's rows, and if that takes too long
MAX_RANKED = 60_000  # matching rows beyond which the commonest words no longer select candidates
PATIENCE = 20  # factor for time limits, where somebody asked for all results
ALL_COVERED = 0.99
KIND_PRIORITY: tuple[str, ...] = (  # breaks ties: curated rows, then messages, then what is derived from them
    *("memory", "knowledge", "observation", "key_value", "entry"),
    *("history", "summary", "document", "session", "cached"),
)


@dataclass(frozen=True)
class RankOptions:
    """How to rank. ``recency``: off, floored, or Grip's decay of ``decay`` per hour.

    ``graph``: expand rare words with their neighbours in the semantic graph. ``dense``: add semantic matches where
    the workspace enables them. ``per_session``: list only so many messages of a session (0: all). ``patience``: a
    factor for the time limits. ``correct``: correct words that no row contains. ``corrected``, ``known``,
    ``question``: of earlier searches for the same words in the same scope, what they corrected, counted and asked.
    """

    recency: str = "off"
    decay: float = 0.001
    graph: bool = True
    dense: bool = True
    per_session: int = 0
    patience: int = 1
    correct: bool = True
    corrected: Corrections = field(default_factory=dict)
    known: KnownCounts | None = None
    question: semantic.Question | None = None


@dataclass(frozen=True)
class Hit:
    """One result. ``score``: higher is better; ``scored`` explains it."""

    kind: str
    pk: int
    score: float
    scored: ScoredRow
    row: Model

    @property
    def key(self) -> tuple[float, str, int]:
        return -self.score, self.kind, -self.pk


@dataclass
class SearchResults:
    """Results, best first, with what explains them.

    ``added``: for each query word, the expansions with their weights. ``notes``: sentences for the user. ``ranked``:
    how many results were ranked. ``cut``: the sessions of which messages were left out, by their last listed one.
    ``messages``: the best message of sessions that were searched by what was said in them. ``semantic_weight``: of
    semantic matches beside matches of words. ``corrected``: the words searched for instead of those that no row
    contains, by typed word.
    """

    hits: list[Hit]
    weights_by_kind: dict[str, TermWeights] = field(default_factory=dict)
    added: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    ranked: int = 0
    cut: dict[int, int] = field(default_factory=dict)
    messages: dict[int, Entry] = field(default_factory=dict)
    semantic_weight: float = 0.0
    has_more: bool = False
    is_partial: bool = False
    corrected: Corrections = field(default_factory=dict)


def find(
    scope: Scope,
    query: Query,
    *,
    now: datetime,
    kinds: Iterable[str] = (),
    options: RankOptions | None = None,
    limit: int = LIMIT,
    after: tuple[float, str, int] | None = None,
) -> SearchResults:
    """Return the results of a query, best first, starting after the hit whose ``key`` is ``after``.

    Ranks at most 200 results and spends about 130 ms in the database; ``notes`` says what that left out. A query
    without words has no results here: see ``listing``.
    """
    count_search()
    options = options or RankOptions()
    query = with_corrections(query, options.corrected)
    question = options.question or (semantic.ask(scope, query, now=now) if options.dense else None)
    clock, known = Clock(MILLISECONDS, options.patience), options.known or KnownCounts()
    counted = count_words(scope, query, kinds, clock, known)
    counted, corrected = correct(scope, counted, kinds, clock, known) if options.correct else (counted, {})
    corrected = options.corrected | corrected
    query, asked = counted.query, counted.kinds
    filtered_list = [one.filtered for one in asked]
    is_partial = any(one.is_partial for one in asked)
    found = SearchResults([], notes=list(counted.notes), is_partial=is_partial, corrected=corrected)
    if options.graph and scope.home is not None and not query.required:
        found.added = _expansions(scope.home, query, asked)
    lists: dict[str, list[ScoredRow]] = {}
    for one in asked:
        scored = _rank(one, query, found, options, now, clock)
        if scored:
            lists[one.filtered.kind.name] = scored
    conversations = next((one for one in filtered_list if one.entries is not None), None)
    best_messages = _rank_conversations(conversations, lists, found) if conversations else {}
    if question:
        _add_semantic_matches(lists, question, filtered_list, query, found, _decay(options, now))
    if len(lists) > 1 and "session" in lists and not conversations:  # only if its own text has all the words
        lists["session"] = [one for one in lists["session"] if one.coverage > ALL_COVERED]
    ordered = _ordered(lists)
    if found.is_partial:
        found.notes.append(gettext(INCOMPLETE))
    found.ranked = len(ordered)
    if options.per_session:
        ordered, found.cut = best_of_sessions(ordered, options.per_session)
    left = [item for item in ordered if after is None or (-item[1], item[0], -item[2].pk) > after]
    found.hits = _loaded(left[:limit], {one.filtered.kind.name: one.filtered for one in asked})
    found.messages = _messages(best_messages, found.hits)
    found.has_more = len(left) > limit
    return found


def _rank_conversations(
    filtered: FilteredKind, lists: dict[str, list[ScoredRow]], found: SearchResults
) -> dict[int, int]:
    """Replace the ranked messages by their sessions; return the key of each session's best message."""
    entries = lists.pop("entry", [])
    if not entries:
        return {}
    term_weights = found.weights_by_kind["session"] = found.weights_by_kind.pop("entry")
    ranked = rank_conversations(filtered, entries, lists.get("session", []), term_weights)
    lists["session"] = ranked.rows
    return ranked.messages


def _messages(by_session: Mapping[int, int], hits: Sequence[Hit]) -> dict[int, Entry]:
    """Return the best messages of the sessions among the hits, by session."""
    keys = {hit.pk: by_session[hit.pk] for hit in hits if hit.kind == "session" and hit.pk in by_session}
    rows = Entry.objects.in_bulk(list(keys.values())) if keys else {}
    return {session: rows[key] for session, key in keys.items() if key in rows}


def _expansions(workspace: int, query: Query, asked: Sequence[KindQuery]) -> dict[str, list[tuple[str, float]]]:
    """Return the weighted graph neighbours of query words that are rare in the workspace."""
    words = [term.words[0] for term in query.ranked_terms if len(term.words) == 1]
    frequency: Counter[str] = Counter()
    for one in asked:
        frequency.update({term.words[0]: count for term, count in one.counts.items() if len(term.words) == 1})
    added: dict[str, list[tuple[str, float]]] = {}
    for near in expand(Workspace(pk=workspace), words, frequency):
        added.setdefault(near.word, []).append((near.related, near.weight))
    return added


def _weights(query: Query, corrected: Corrections) -> dict[Term, float]:
    """Return the weights of a query's terms: corrected words, and those that only phrase a question, weigh less."""
    terms = query.ranked_terms
    is_phrased = not all(term.is_phrasing for term in terms)
    weights = {term: PHRASING_WEIGHT if is_phrased and term.is_phrasing else 1.0 for term in terms}
    guessed = [term for term in terms if term.words[0] in corrected.values()]
    return weights | dict.fromkeys(guessed, CORRECTED_WEIGHT)


def _rank(
    asked: KindQuery, query: Query, found: SearchResults, options: RankOptions, now: datetime, clock: Clock
) -> list[ScoredRow]:
    """Return the scored rows of one kind, best first."""
    filtered = asked.filtered
    weights = _weights(query, found.corrected)
    asked_terms = set(weights)
    for near in found.added.values():
        for word, weight in near:
            if words := tuple(split_words(word)):
                weights.setdefault(Term(words), weight)
    further = [term for term in weights if term not in asked.counts]
    if further:
        [more] = count_rows_by_term([filtered], further, clock)
        asked.counts |= more.counts
        found.is_partial = found.is_partial or more.is_partial
        filtered = replace(
            filtered, index_query=replace(filtered.index_query, terms=(*filtered.index_query.terms, *further))
        )
    terms = [
        WeightedTerm(
            term.words, term.is_prefix, weight, asked.counts[term], term not in asked_terms, literal=term.literal
        )
        for term, weight in weights.items()
    ]
    if not any(term.frequency for term in terms):
        return []
    candidates = load_candidates(filtered.kind, _best(filtered, asked, found, clock))
    terms = with_exact_texts(terms, candidates) if any(term.literal for term in terms) else terms
    is_entry = filtered.kind.name == "entry"
    ranking = rank(
        terms,
        candidates,
        asked.total,
        load=(lambda places: load_neighbours(filtered, places)) if is_entry else None,
        authors={one.author for one in candidates if one.author},
        decay=_decay(options, now),
        prefers_users=is_entry and not asks_for_assistant(query.text),
        periods=periods(query.text, now),
    )
    found.weights_by_kind[filtered.kind.name] = ranking.term_weights
    rows = [one for one in ranking.rows if one.coverage] if filtered.kind.name == "document" else ranking.rows
    return rows[:MOST]


def _add_semantic_matches(
    lists: dict[str, list[ScoredRow]],
    question: semantic.Question,
    filtered_list: Sequence[FilteredKind],
    query: Query,
    found: SearchResults,
    decay: Decay,
) -> None:
    """Merge semantic matches into the lists of word matches."""
    near = semantic.nearest(question, filtered_list, decay)
    found.notes += [near.note] if near.note else []
    by_kind = dict(near.by_kind)
    conversations = next((one for one in filtered_list if one.entries is not None), None)
    if conversations and "entry" in by_kind:
        by_kind["session"] = near_sessions(conversations, by_kind.pop("entry"))
    found.semantic_weight = near.weight
    for kind, rows in by_kind.items():
        lists[kind] = semantic.fused(lists.get(kind, []), rows, near.weight)[:MOST]
        found.weights_by_kind.setdefault(kind, semantic.measure_without_words(query))


def _decay(options: RankOptions, now: datetime) -> Decay:
    if options.recency == "floored":
        return Decay("floored", now)
    return Decay("grip", now, options.decay) if options.recency == "grip" else OFF


def _best(filtered: FilteredKind, asked: KindQuery, found: SearchResults, clock: Clock) -> list[int]:
    index_query = _affordable(filtered.index_query, asked.counts, found)
    if not (asked.is_partial or index_query.excluded) and _at_most(index_query, asked.counts) <= CANDIDATES:
        return all_matches(connection, index_query, only=filtered.only)
    try:
        with time_limit(connection, clock.left(BEST_MILLISECONDS)):
            best = best_matches(connection, index_query, total=asked.total, only=filtered.only)
            return with_exact_rows(filtered, best, total=asked.total, limit=CANDIDATES)
    except SearchTooSlow:
        found.is_partial = True
    try:
        with time_limit(connection, clock.left(NEWEST_MILLISECONDS)):
            return list(filtered.matches(window=CANDIDATES).order_by("-pk").values_list("pk", flat=True)[:CANDIDATES])
    except SearchTooSlow:
        return []


def _at_most(index_query: IndexQuery, counts: Mapping[Term, int]) -> int:
    """Return a number of rows that a query can't match more than: what the rarest group's terms match in all."""
    return min(sum(counts.get(term, CANDIDATES + 1) for term in group) for group in index_query.groups)


def _affordable(index_query: IndexQuery, counts: Mapping[Term, int], found: SearchResults) -> IndexQuery:
    """Drop the commonest words from candidate selection when too many rows contain them."""
    if index_query.required or sum(counts.get(term, 0) for term in index_query.terms) <= MAX_RANKED:
        return index_query
    kept: list[Term] = []
    seen = 0
    for term in sorted(index_query.terms, key=lambda term: counts.get(term, 0)):
        seen += counts.get(term, 0)
        if kept and seen > MAX_RANKED:
            break
        kept.append(term)
    left = [" ".join(term.words) for term in index_query.terms if term not in kept]
    if left:
        found.notes.append(
            gettext("Too common to select results, used only to rank them: %(words)s.") % {"words": ", ".join(left)}
        )
    return replace(index_query, terms=tuple(kept))


def _ordered(lists: Mapping[str, list[ScoredRow]]) -> list[tuple[str, float, ScoredRow]]:
    """Return the results of all kinds as one list of (kind, score, result), fused if there are several kinds."""
    if len(lists) == 1:
        return [(kind, one.score, one) for kind, scored in lists.items() for one in scored]
    priority = {kind: 1 - 0.01 * place for place, kind in enumerate(KIND_PRIORITY)}
    fused = fuse(
        {
            kind: [((kind, one.pk), one.score, priority[kind] * max(one.coverage, one.cosine)) for one in scored]
            for kind, scored in lists.items()
        }
    )
    by_key = {(kind, one.pk): one for kind, scored in lists.items() for one in scored}
    ordered = [(kind, score, by_key[kind, pk]) for (kind, pk), score in fused]
    return sorted(ordered, key=lambda item: (-item[1], item[0], -item[2].pk))[:MOST]


def _loaded(items: Sequence[tuple[str, float, ScoredRow]], filtered_list: Mapping[str, FilteredKind]) -> list[Hit]:
    rows: dict[tuple[str, int], Any] = {}
    for kind, filtered in filtered_list.items():
        pks = [one.pk for name, _, one in items if name == kind]
        if pks:
            rows |= {(kind, pk): row for pk, row in load(filtered.kind, pks).items()}
    return [Hit(kind, one.pk, score, one, rows[kind, one.pk]) for kind, score, one in items if (kind, one.pk) in rows]
