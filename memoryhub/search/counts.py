"""Count the rows that contain each term of a query, and split terms that no row contains.

Every part of the search (counts, lists, ranking) goes through this, so that all of them read a query alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from django.db import connection
from django.db.models import Max, Min
from django.utils.translation import gettext, gettext_noop

from memoryhub.lib.search.matching import (
    MAX_COUNTED,
    IndexQuery,
    SearchTooSlow,
    TermCount,
    count_terms,
    database_clock,
    estimate,
    time_limit,
)
from memoryhub.lib.search.query import MAX_TERMS, Query, Term
from memoryhub.lib.search.tokenizing import STOP_WORDS, is_emoji, word_parts
from memoryhub.search.filters import FilteredKind, Scope, filtered_kinds

MILLISECONDS = 100  # for counting
INCOMPLETE = gettext_noop("The search took too long: some results may be missing. Add a rarer word or a filter.")


class Clock:
    """The time that a search has left, in milliseconds; at least what a bounded query needs.

    ``patience``: a factor for all its limits.
    """

    def __init__(self, milliseconds: int, patience: int = 1) -> None:
        self._patience = patience
        self._end = database_clock(connection) + milliseconds * patience / 1000

    @property
    def is_over(self) -> bool:
        return database_clock(connection) >= self._end

    def left(self, at_most: int) -> int:
        return max(5, min(at_most * self._patience, int((self._end - database_clock(connection)) * 1000)))


IndexKey = tuple[str, frozenset[tuple[str, tuple[int, ...]]], tuple[str, ...]]  # table, scope, kinds


@dataclass
class KnownCounts:
    """What searches with the same scope share: rows with a term, all rows and their keys, and words of no row."""

    with_term: dict[tuple[IndexKey, Term], TermCount] = field(default_factory=dict)
    rows: dict[IndexKey, int] = field(default_factory=dict)
    keys: dict[IndexKey, tuple[int, int]] = field(default_factory=dict)  # the lowest and the highest
    nowhere: set[Term] = field(default_factory=set)

    def is_somewhere(self, term: Term) -> bool:
        return any(found[0] and known == term for (_, known), found in self.with_term.items())


@dataclass
class KindQuery:
    """A kind to search: its rows, their number, and how many of them contain each term.

    ``is_partial``: counting took too long, so every row is assumed to contain every term.
    """

    filtered: FilteredKind
    total: int
    counts: dict[Term, int]
    is_partial: bool = False


@dataclass(frozen=True)
class CountedQuery:
    """The query to run after splitting, its kinds, and notes for the user on how it was read."""

    query: Query
    kinds: list[KindQuery]
    notes: list[str] = field(default_factory=list)


def count_words(
    scope: Scope, query: Query, kinds: Iterable[str], clock: Clock, known: KnownCounts | None = None
) -> CountedQuery:
    """Count the rows of each kind by term, after splitting terms that no row contains."""
    filtered_list = [filtered for filtered in filtered_kinds(scope, query, kinds) if filtered.has_words]
    filtered_list += [filtered.entries for filtered in filtered_list if filtered.entries]
    asked = count_rows_by_term(filtered_list, query.ranked_terms, clock, known)
    missing = _missing_phrases(query, asked)
    unknown = [term for term in query.terms if len(_parts(term)) > 1 and not any(one.counts[term] for one in asked)]
    unknown += missing
    if not unknown or not asked:
        return CountedQuery(query, asked)
    required = tuple(group for group in query.required if group[0] not in missing)
    query = replace(query, terms=(*query.terms, *missing), required=required)
    terms = [part for term in query.terms for part in (_parts(term) if term in unknown else [term])]
    query = replace(query, terms=tuple(dict.fromkeys(terms))[:MAX_TERMS])
    filtered_list = [
        replace(
            one.filtered, index_query=replace(one.filtered.index_query, terms=query.terms, required=query.required)
        )
        for one in asked
    ]
    names = ", ".join(f"“{' '.join(term.words)}”" for term in unknown)
    note = gettext("No exact match for %(words)s: its parts were searched.") % {"words": names}
    return CountedQuery(query, count_rows_by_term(filtered_list, query.ranked_terms, clock, known), [note])


def _missing_phrases(query: Query, asked: Sequence[KindQuery]) -> list[Term]:
    """Return the quoted phrases beside other words that no row contains, such as a title in a question."""
    if not query.terms:
        return []
    phrases = [group[0] for group in query.required if len(group) == 1 and group[0].is_quoted]
    return [term for term in phrases if len(_parts(term)) > 1 and not any(one.counts.get(term) for one in asked)]


def as_searched(scope: Scope, query: Query, kinds: Iterable[str] = ()) -> Query:
    """Return a query as ``ranking.find`` runs it: terms that no row contains are split."""
    if not any(
        len(_parts(term)) > 1 for term in (*query.terms, *(term for group in query.required for term in group))
    ):
        return query
    return count_words(scope, query, kinds, Clock(MILLISECONDS)).query


def count_rows_by_term(
    filtered_list: Sequence[FilteredKind], terms: Sequence[Term], clock: Clock, known: KnownCounts | None = None
) -> list[KindQuery]:
    """Count the rows of each kind by term; on a timeout, every row is assumed to match.

    ``known``: what earlier searches counted isn't counted again.
    """
    known = known or KnownCounts()
    try:
        _count_unknown([filtered.index_query for filtered in filtered_list], terms, clock, known)
    except SearchTooSlow:
        totals = [filtered.count_rows() for filtered in filtered_list]
        pairs = zip(filtered_list, totals, strict=True)
        return [KindQuery(filtered, total, dict.fromkeys(terms, total), is_partial=True) for filtered, total in pairs]
    return [_kind_query(filtered, terms, known) for filtered in filtered_list]


def _count_unknown(queries: Sequence[IndexQuery], terms: Sequence[Term], clock: Clock, known: KnownCounts) -> None:
    keys = {_index_key(query): query for query in queries}
    missing = [term for term in terms if any((key, term) not in known.with_term for key in keys)]
    keys = {key: query for key, query in keys.items() if any((key, term) not in known.with_term for term in missing)}
    if not missing:
        return
    with time_limit(connection, clock.left(MILLISECONDS)):
        counted = count_terms(connection, list(keys.values()), missing)
    for key, found in zip(keys, counted, strict=True):
        known.with_term |= {(key, term): count for term, count in zip(missing, found, strict=True)}


def _index_key(query: IndexQuery) -> IndexKey:
    scope = frozenset((letter, tuple(keys)) for letter, keys in query.scope.items())
    return query.table, scope, query.kinds


def _kind_query(filtered: FilteredKind, terms: Sequence[Term], known: KnownCounts) -> KindQuery:
    key = _index_key(filtered.index_query)
    counted = [known.with_term[key, term] for term in terms]
    if not any(count for count, _, _ in counted):
        return KindQuery(filtered, 0, dict.fromkeys(terms, 0))
    if key not in known.rows:
        known.rows[key] = filtered.count_rows()
    total, first, last = known.rows[key], 0, 0
    if any(count >= MAX_COUNTED for count, _, _ in counted):
        if key not in known.keys:
            rows = filtered.indexed  # one query each: SQLite would scan the table for both at once
            known.keys[key] = rows.aggregate(key=Min("pk"))["key"], rows.aggregate(key=Max("pk"))["key"]
        first, last = known.keys[key]
    estimates = [estimate(one, total=total, first=first, last=last) for one in counted]
    return KindQuery(filtered, total, dict(zip(terms, estimates, strict=True)))


def _parts(term: Term) -> list[Term]:
    """Split a term into words, words of paired scripts into character pairs, and runs of emoji into emoji."""
    written = [part for word in term.words for part in word_parts(word)]
    return [Term((part,)) for part in written if part not in STOP_WORDS and (len(part) > 1 or is_emoji(part))]
