"""Tell which text of a row people verified, so that undoing an edit verifies no other one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q

from knowledge_app.models import Fact, MemoryRevision
from knowledge_app.services.decisions import PEOPLE, REPEATING
from knowledge_app.services.documents.fact_states import REVISED, REWORDED
from knowledge_app.services.rows.row_changes import Values
from sessions_app.models import AuditRecord


def verified_before(row: Any, moment: datetime) -> datetime | None:
    """Return when a row was verified last before a moment: the text that it had then."""
    states = row.history.filter(Q(last_verified_at=None) | Q(last_verified_at__lte=moment)).order_by("-history_id")
    found: datetime | None = states.values_list("last_verified_at", flat=True).first()
    return found


def was_verified(row: Any, values: Values, moment: datetime) -> bool:
    """Tell whether a row that is to get ``values`` had the text that it then has when it was verified at a moment.

    A fact had it unless others than people reworded it since.
    """
    if isinstance(row, Fact):
        later = MemoryRevision.objects.filter(document=row.document_id, created_at__gt=moment)
        pks = map(str, later.exclude(author_kind__in=PEOPLE).values_list("pk", flat=True))
        records = AuditRecord.objects.filter(action=REVISED, object_kind="revision", object_id__in=list(pks))
        return all(str(row.pk) not in detail.get(REWORDED, {}) for detail in records.values_list("detail", flat=True))
    name = REPEATING[type(row)]
    return bool(row.history.filter(last_verified_at=moment, **{name: values.get(name, getattr(row, name))}).exists())
