"""Prefer rows that contain a term as it was typed, with its signs: "C++" over "c".

The indexes contain words without signs. So rows are selected by the words, and scored by the whole text too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db import connection
from django.db.models import Q

from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.search.hits import WeightedTerm, find_hits
from memoryhub.lib.search.matching import best_matches
from memoryhub.lib.search.query import Term
from memoryhub.lib.search.scoring import MAX_CHARS, Candidate
from memoryhub.search.filters import FilteredKind
from memoryhub.search.kinds import Kind

OF_LITERAL = 0.7  # part of a term's weight that only rows with the exact text get


def with_exact_rows(filtered: FilteredKind, best: Sequence[int], *, total: int, limit: int) -> list[int]:
    """Return the best rows, preceded by those with a term's exact text if there may be more rows than these."""
    terms = tuple(term for group in filtered.index_query.groups for term in group if term.literal)
    if not terms or len(best) < limit:
        return list(best)
    query = replace(filtered.index_query, terms=() if filtered.index_query.required else terms)
    has_text = Q(*[_contains(filtered.kind, term) for term in terms], _connector=Q.OR)
    only = replace(filtered, conditions=(*filtered.conditions, has_text), is_narrowed=True).only
    exact = best_matches(connection, query, total=total, only=only, limit=limit)
    return list(dict.fromkeys([*exact, *best]))[:limit]


def _contains(kind: Kind, term: Term) -> Q:
    condition = Q(pk__in=[])
    for name in kind.texts:
        shown = Q(**{kind.hidden_by[name]: False}) if name in kind.hidden_by else Q()
        condition |= any_case(f"{name}__icontains", term.literal) & shown
    return condition


def with_exact_texts(terms: Sequence[WeightedTerm], candidates: Sequence[Candidate]) -> list[WeightedTerm]:
    """Return the terms, and one more for each exact text that a candidate contains, which gets most of the weight."""
    literals = [replace(term, words=(term.literal,), is_prefix=False, frequency=0) for term in terms if term.literal]
    found = {
        literal.literal: literal
        for literal in literals
        if any(find_hits([literal], row.text[:MAX_CHARS])[0] for row in candidates)
    }
    plain = [
        replace(term, weight=term.weight * (1 - OF_LITERAL)) if term.literal in found else replace(term, literal="")
        for term in terms
    ]
    return plain + [replace(one, weight=one.weight * OF_LITERAL) for one in found.values()]
