"""Tell which text of a row people verified, so that undoing an edit verifies no other one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db.models import CharField, Q
from django.db.models.functions import Cast

from knowledge_app.models import Fact, MemoryRevision
from knowledge_app.services.decisions import PEOPLE, REPEATING
from knowledge_app.services.documents.fact_states import REVISED, REWORDED
from knowledge_app.services.rows.row_changes import Changes, Values
from sessions_app.models import AuditRecord


def verified_before(row: Any, moment: datetime) -> datetime | None:
    """Return when a row was verified last before a moment: the text that it had then."""
    states = row.history.filter(Q(last_verified_at=None) | Q(last_verified_at__lte=moment)).order_by("-history_id")
    found: datetime | None = states.values_list("last_verified_at", flat=True).first()
    return found


def was_verified(row: Any, values: Values, moment: datetime) -> bool:
    """Tell whether a row that is to get ``values`` had the text that it then has when it was verified at a moment."""
    name = REPEATING[type(row)]
    return bool(row.history.filter(last_verified_at=moment, **{name: values.get(name, getattr(row, name))}).exists())


def reworded_since(facts: Collection[Fact], moments: Mapping[int, datetime]) -> set[int]:
    """Return the keys of facts that others than people reworded after moments, by key. At most one query."""
    if not moments:
        return set()
    documents = {fact.document_id for fact in facts}
    later = MemoryRevision.objects.filter(document__in=documents, created_at__gt=min(moments.values()))
    pks = later.exclude(author_kind__in=PEOPLE).annotate(key=Cast("pk", CharField())).values("key")
    records = AuditRecord.objects.filter(action=REVISED, object_kind="revision", object_id__in=pks)
    return {
        int(pk)
        for at, detail in records.values_list("at", "detail")
        for pk in detail.get(REWORDED, {})
        if int(pk) in moments and moments[int(pk)] < at
    }


def leave_unverified(facts: Mapping[int, Any], changes: Changes) -> None:
    """Drop the dates of verifications from changes of facts that others than people reworded since then."""
    dated = {pk: values for pk, values in changes.items() if values and values.get("last_verified_at")}
    moments = {pk: values["last_verified_at"] for pk, values in dated.items()}
    for pk in reworded_since([facts[pk] for pk in moments], moments):
        del dated[pk]["last_verified_at"]
