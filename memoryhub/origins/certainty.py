"""The origins of many facts at once, and facts filtered by how certain their origin is."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Exists, OuterRef, Q

from knowledge_app.models import FactSource
from memoryhub.origins.explanation import BY_PERSON, CERTAINTY

ORDER = FactSource.Kind.values  # the most certain first
DEFERRED = ("entry__content", "entry__tool_calls", "history_entry__content")


def best_sources(facts: Collection[int]) -> dict[int, FactSource]:
    """Return the best source of each fact, by the fact's key, with its message, run and history entry. Two queries.

    Held history entries explain nothing.
    """
    rows = FactSource.objects.filter(fact__in=facts, history_entry__hold=None)
    best: dict[int, tuple[int, float, int]] = {}
    for fact, kind, score, pk in rows.values_list("fact_id", "kind", "score", "pk"):
        place = ORDER.index(kind), -(score or 0), pk
        best[fact] = min(best.get(fact, place), place)
    found = FactSource.objects.filter(pk__in=[pk for _order, _score, pk in best.values()])
    found = found.select_related("entry__session", "run", "history_entry").defer(*DEFERRED)
    return {source.fact_id: source for source in found}


def has_certainty(certainty: str) -> Q:
    """Return the condition for facts whose origin has a certainty (``CERTAINTIES``)."""
    by_person = Q(born__author_kind__in=BY_PERSON, accepted=None) | Q(corrected__isnull=False)
    by_agent = Q(born__author_kind="agent", accepted=None) & ~_has_source(ORDER)
    certain = by_person | by_agent | _has_source([kind for kind in ORDER if CERTAINTY[kind] == "certain"])
    if certainty == "certain":
        return certain
    better = certain
    for kind in ORDER:
        if CERTAINTY[kind] == certainty:
            return _has_source([kind]) & ~better
        better |= _has_source([kind])
    return ~better


def _has_source(kinds: Collection[str]) -> Q:
    return Q(Exists(FactSource.objects.filter(fact=OuterRef("pk"), kind__in=kinds, history_entry__hold=None)))
