"""Correct a query's words that occur nowhere, by the nearest word of the rows that the search may show.

Words are read from the texts of rows that pass the search's filters, so nothing else can be suggested: from the
newest rows, and from those that the index finds for all words at distance 1. Of words at distance 2, the index finds
those that start like the typed word or whose edits are slips of the hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from django.db import connection
from django.utils.translation import gettext

from memoryhub.lib.masked_text import masked
from memoryhub.lib.search.matching import SearchTooSlow, ids_sql, time_limit
from memoryhub.lib.search.query import Query, Term
from memoryhub.lib.search.tokenizing import STOP_WORDS, fold, is_paired, split_words
from memoryhub.lib.search.typos import (
    MAX_LETTERS,
    MIN_LETTERS,
    TWO_EDITS,
    distance,
    one_edit,
    slips,
    swaps,
    two_slips,
)
from memoryhub.search.candidates import load_candidates
from memoryhub.search.counts import Clock, CountedQuery, KnownCounts, count_rows_by_term
from memoryhub.search.filters import FilteredKind, Scope, filtered_kinds

CORRECTED_WEIGHT = 0.5  # of a corrected word: less than what was typed right
MOST_CORRECTED = 3  # words of a query
MILLISECONDS = 12  # for all words; a statement that is running may take 5 ms more
ROWS = 40  # of each kind whose words are compared
MAX_CHARS = 30_000  # compared in all, and a tenth of it in one row
TAIL = 3  # letters that may differ after a common start
_WORDS = re.compile(r"\w+")
Corrections = dict[str, str]  # by typed word


def correct(
    scope: Scope, counted: CountedQuery, kinds: Iterable[str], clock: Clock, known: KnownCounts
) -> tuple[CountedQuery, Corrections]:
    """Return the counted query with unknown words corrected, and the corrections."""
    left = Clock(MILLISECONDS)
    unknown = _unknown_words(scope, counted, kinds, clock, known)[:MOST_CORRECTED]
    nearest = {word: _nearest(counted, word, left) for word in unknown}
    found = {word: near for word, near in nearest.items() if near}
    if not found:
        return counted, {}
    query = with_corrections(counted.query, found)
    filtered_list = [_with_terms(one.filtered, query.terms, query.required) for one in counted.kinds]
    asked = count_rows_by_term(filtered_list, query.ranked_terms, clock, known)
    return CountedQuery(query, asked, counted.notes), found


def with_corrections(query: Query, corrections: Mapping[str, str]) -> Query:
    """Return a query with some of its words replaced."""

    def one(term: Term) -> Term:
        known = corrections.get(term.words[0]) if len(term.words) == 1 else None
        return replace(term, words=(known,)) if known else term

    terms = tuple(dict.fromkeys(map(one, query.terms)))
    required = tuple(dict.fromkeys(tuple(map(one, group)) for group in query.required))
    return replace(query, terms=terms, required=required)


def correction_notes(corrected: Corrections) -> list[str]:
    """Return a sentence for the user about each correction."""
    message = gettext("No row contains “%(typed)s”: “%(used)s” was searched instead.")
    return [message % {"typed": typed, "used": used} for typed, used in corrected.items()]


def _unknown_words(
    scope: Scope, counted: CountedQuery, kinds: Iterable[str], clock: Clock, known: KnownCounts
) -> list[str]:
    """Return the words that may be mistyped and that no row of the scope contains, of any kind."""
    query, asked = counted.query, counted.kinds
    if any(one.is_partial for one in asked):
        return []
    unknown = [term for term in query.ranked_terms if _may_be_mistyped(term) and not known.is_somewhere(term)]
    unsure = [term for term in unknown if term not in known.nowhere]
    if unsure and (set(kinds) or query.filters):
        everywhere = filtered_kinds(scope, Query(query.text, tuple(unsure)))
        asked = count_rows_by_term(everywhere, unsure, clock, known)
        known.nowhere |= {term for term in unsure if not any(one.counts.get(term) for one in asked)}
        unknown = [term for term in unknown if term in known.nowhere]
    return [term.words[0] for term in unknown]


def _may_be_mistyped(term: Term) -> bool:
    word = term.words[0]
    is_word = len(term.words) == 1 and not (term.is_prefix or term.is_quoted or term.literal or term.is_phrasing)
    is_written = word.isalpha() and not is_paired(word) and MIN_LETTERS <= len(word) <= MAX_LETTERS
    return is_word and is_written


def _nearest(counted: CountedQuery, word: str, clock: Clock) -> str:
    """Return the nearest word of the rows that pass the filters, or ""."""
    near, likely, edits = one_edit(word), slips(word), 2 if len(word) >= TWO_EDITS else 1
    if near & STOP_WORDS:
        return ""

    def texts(words: Iterable[str], *, starts: Iterable[str] = ()) -> list[str]:
        terms = [Term((one,)) for one in sorted(words)] + [Term((one,), is_prefix=True) for one in sorted(starts)]
        return _texts([_with_terms(one.filtered, tuple(terms)) for one in counted.kinds], clock)

    newest = texts(())
    best = _best(word, [*newest, *texts(swaps(word))], 1)
    best = best or _best(word, texts(likely), 1) or _best(word, texts(near - likely), 1)
    if best or edits == 1:
        return best
    start = word[:-TAIL]
    return _best(word, newest, 2) or _best(word, texts(two_slips(word), starts={start, *slips(start)}), 2)


def _with_terms(
    filtered: FilteredKind, terms: tuple[Term, ...], required: tuple[tuple[Term, ...], ...] = ()
) -> FilteredKind:
    entries = _with_terms(filtered.entries, terms, required) if filtered.entries else None
    index_query = replace(filtered.index_query, terms=terms, required=required)
    return replace(filtered, index_query=index_query, entries=entries)


def _texts(filtered_list: Sequence[FilteredKind], clock: Clock) -> list[str]:
    """Return the texts of the newest matches of each kind, while there is time."""
    found: list[str] = []
    for filtered in filtered_list:
        if clock.is_over:
            break
        try:
            with time_limit(connection, clock.left(MILLISECONDS)):
                rows = load_candidates(filtered.kind, _newest(filtered))
        except SearchTooSlow:
            break
        found += [row.text.split("\n")[0] if filtered.kind.name == "key_value" else row.text for row in rows]
    return found


def _newest(filtered: FilteredKind) -> list[int]:
    if not filtered.has_words:
        return list(filtered.rows.order_by("-pk").values_list("pk", flat=True)[:ROWS])
    only = replace(filtered, is_narrowed=True).only
    with connection.cursor() as cursor:
        cursor.execute(*ids_sql(connection, filtered.index_query, only=only, limit=ROWS))
        return [pk for (pk,) in cursor.fetchall()]


def _best(word: str, texts: Sequence[str], most: int) -> str:
    """Return the nearest word in the texts: by distance, then swapped letters, then the same first letter, then how
    many texts have it. With two edits, the first letter is the same.

    Words in secrets, which are masked where texts are shown, don't count.
    """
    counts: Counter[str] = Counter()
    chars = MAX_CHARS
    for text in texts:
        compared = text[: min(chars, MAX_CHARS // 10)]
        chars -= len(compared)
        counts.update(set(_WORDS.findall(fold(compared))))
    swapped = swaps(word)
    lengths = range(max(MIN_LETTERS - 1, len(word) - most), len(word) + most + 1)
    near = [
        (edits, one not in swapped, one[0] != word[0], -count, one)
        for one, count in counts.items()
        if len(one) in lengths and one.isalpha() and one not in STOP_WORDS
        if 0 < (edits := distance(word, one, most)) <= most and (edits == 1 or one[0] == word[0])
    ]
    return next((one for *_, one in sorted(near) if _is_shown(one, texts)), "")


def _is_shown(word: str, texts: Sequence[str]) -> bool:
    return any(word in split_words(masked(text)) for text in texts if word in fold(text))
