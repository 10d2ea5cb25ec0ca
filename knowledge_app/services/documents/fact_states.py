"""What people decided about the words of facts: kept when a revision rewords them, and restored when it is undone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.utils.dateparse import parse_datetime

from knowledge_app.models import Fact, MemoryRevision
from memoryhub.lib.text.facts import fact_lines
from sessions_app.models import AuditRecord

REWORDED = "reworded"  # in the detail of the audit record of a revision
REVISED = "document.revised"
State = Sequence[Any]  # when the words were verified, and the revisions that corrected and accepted them


def states_of(facts: Collection[Fact]) -> dict[str, State]:
    """Return the states of facts before they are reworded, by their keys, as JSON types."""
    return {
        str(fact.pk): [
            fact.last_verified_at.isoformat() if fact.last_verified_at else None,
            fact.corrected_id,
            fact.accepted_id,
        ]
        for fact in facts
    }


def restore_states(revision: MemoryRevision, *, undone: Collection[MemoryRevision]) -> None:
    """Give facts whose earlier words a revision restores the states that they had before the undone revisions."""
    first = min(undone, key=lambda one: one.number)
    states = _states_before(undone)
    if not states:
        return
    document = revision.document
    before = first.base.content if first.base else ""
    texts = {line.text for line in fact_lines(before, document.separator)}
    facts = Fact.objects.filter(document=document, died=None, pk__in=states)
    restored = [fact for fact in facts if fact.text in texts]
    known = _known(document.pk, [states[fact.pk] for fact in restored])
    for fact in restored:
        verified_at, corrected, accepted = states[fact.pk]
        fact.last_verified_at = parse_datetime(verified_at or "")
        fact.corrected_id = corrected if corrected in known else None
        fact.accepted_id = accepted if accepted in known else None
    Fact.objects.bulk_update(restored, ["last_verified_at", "corrected", "accepted"], batch_size=200)


def _states_before(undone: Collection[MemoryRevision]) -> dict[int, State]:
    """Return the states of reworded facts, by key, before the first of these revisions that reworded each."""
    pks = [str(one.pk) for one in undone]
    records = AuditRecord.objects.filter(action=REVISED, object_kind="revision", object_id__in=pks)
    found: dict[int, State] = {}
    for detail in records.order_by("id").values_list("detail", flat=True):
        for pk, state in detail.get(REWORDED, {}).items():
            found.setdefault(int(pk), state)
    return found


def _known(document: int, states: Collection[State]) -> set[int]:
    wanted = {pk for _verified, *pks in states for pk in pks if pk is not None}
    return set(MemoryRevision.objects.filter(document=document, pk__in=wanted).values_list("pk", flat=True))
