"""How many rows hold each word of a query, and with it what the query can mean: words that nothing holds as a whole
are taken by their parts, the same way wherever a search counts, lists or ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from django.db import connection
from django.db.models import Max, Min
from django.utils.translation import gettext

from memoryhub.lib.search.matching import COUNTED, SearchTooSlow, TermCount, count_terms, estimate, within
from memoryhub.lib.search.query import MAX_TERMS, Query, Term
from memoryhub.lib.search.tokenizing import STOP, is_paired, pairs_of
from memoryhub.search.filters import FilteredKind, Scope, filtered_kinds

MILLISECONDS = 100  # for counting alone


class Clock:
    """How many milliseconds a search may still take; never less than what a bounded query needs."""

    def __init__(self, milliseconds: int) -> None:
        self._end = monotonic() + milliseconds / 1000

    def left(self, at_most: int) -> int:
        return max(5, min(at_most, int((self._end - monotonic()) * 1000)))


@dataclass
class Asked:
    """A kind that is being searched: its rows, how many there are, and the number of them that hold each term.

    ``is_partial``: counting took too long, and all rows are said to hold every term.
    """

    fitting: FilteredKind
    total: int
    counts: dict[Term, int]
    is_partial: bool = False


@dataclass(frozen=True)
class Counted:
    """A query as it is searched, the kinds that are asked, and what is to be said of how it was read."""

    query: Query
    asked: list[Asked]
    notes: list[str] = field(default_factory=list)


def count_words(scope: Scope, query: Query, kinds: Iterable[str], clock: Clock) -> Counted:
    """Count the rows of each kind that hold each word; what nothing holds as a whole is taken by its parts."""
    fittings = [fitting for fitting in filtered_kinds(scope, query, kinds) if fitting.has_words]
    asked = count_rows_with(fittings, query.asked, clock)
    unknown = [term for term in query.terms if len(_parts(term)) > 1 and not any(one.counts[term] for one in asked)]
    if not unknown or not asked:
        return Counted(query, asked)
    terms = [part for term in query.terms for part in (_parts(term) if term in unknown else [term])]
    query = replace(query, terms=tuple(dict.fromkeys(terms))[:MAX_TERMS])
    fittings = [replace(one.fitting, wanted=replace(one.fitting.wanted, terms=query.terms)) for one in asked]
    names = ", ".join(f"“{' '.join(term.words)}”" for term in unknown)
    note = gettext("Nothing holds %(words)s as a whole: the parts were searched.") % {"words": names}
    return Counted(query, count_rows_with(fittings, query.asked, clock), [note])


def as_searched(scope: Scope, query: Query, kinds: Iterable[str] = ()) -> Query:
    """Return a query as ``finding.find`` searches it: with the parts of what nothing holds as a whole."""
    if not any(len(_parts(term)) > 1 for term in query.terms):
        return query
    return count_words(scope, query, kinds, Clock(MILLISECONDS)).query


def count_rows_with(fittings: Sequence[FilteredKind], terms: Sequence[Term], clock: Clock) -> list[Asked]:
    """Count the rows of each kind that hold each term; where that takes too long, all rows are said to."""
    try:
        with within(connection, clock.left(100)):
            counted = count_terms(connection, [fitting.wanted for fitting in fittings], terms)
    except SearchTooSlow:
        totals = [fitting.count_rows() for fitting in fittings]
        pairs = zip(fittings, totals, strict=True)
        return [Asked(fitting, total, dict.fromkeys(terms, total), is_partial=True) for fitting, total in pairs]
    return [_asked(fitting, terms, found) for fitting, found in zip(fittings, counted, strict=True)]


def _asked(fitting: FilteredKind, terms: Sequence[Term], counted: Sequence[TermCount]) -> Asked:
    if not any(count for count, _, _ in counted):
        return Asked(fitting, 0, dict.fromkeys(terms, 0))
    total = fitting.count_rows()
    first = last = 0
    if any(count >= COUNTED for count, _, _ in counted):
        rows = fitting.indexed  # asked one by one: SQLite would read all rows for both
        first, last = rows.aggregate(key=Min("pk"))["key"], rows.aggregate(key=Max("pk"))["key"]
    known = [estimate(one, total=total, first=first, last=last) for one in counted]
    return Asked(fitting, total, dict(zip(terms, known, strict=True)))


def _parts(term: Term) -> list[Term]:
    """Return what a term is made of: its words, and the pairs of characters of those of a paired script."""
    written = [part for word in term.words for part in (pairs_of(word) if is_paired(word) else [word])]
    return [Term((part,)) for part in written if part not in STOP and len(part) > 1]
