"""Tell which text of a row people verified, so that undoing an edit verifies no other one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q

from knowledge_app.models import Fact, MemoryRevision
from knowledge_app.services.decisions import REPEATING
from knowledge_app.services.rows.row_changes import Values
from memoryhub.lib.text.facts import fact_lines


def verified_before(row: Any, moment: datetime) -> datetime | None:
    """Return when a row was verified last before a moment: the text that it had then."""
    states = row.history.filter(Q(last_verified_at=None) | Q(last_verified_at__lte=moment)).order_by("-history_id")
    found: datetime | None = states.values_list("last_verified_at", flat=True).first()
    return found


def was_verified(row: Any, values: Values, moment: datetime) -> bool:
    """Tell whether a row that is to get ``values`` had the text that it then has when it was verified at a moment."""
    if isinstance(row, Fact):
        revisions = MemoryRevision.objects.filter(document=row.document_id, created_at__lte=moment)
        content = revisions.order_by("-number").values_list("content", flat=True).first()
        return any(line.text == row.text for line in fact_lines(content or "", row.document.separator))
    name = REPEATING[type(row)]
    return bool(row.history.filter(last_verified_at=moment, **{name: values.get(name, getattr(row, name))}).exists())
