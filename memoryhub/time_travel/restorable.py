"""What became since of rows as they were: which of them can be brought back, and what the page knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from knowledge_app.services.rows.edits import FROM_FILES
from memoryhub.time_travel.rows import CURATED, states_at
from sessions_app.models import Workspace

TEXTS = ("content", "value")


@dataclass(frozen=True)
class Since:
    """What became of a row that is still there. ``state``: the number of its state of then, ``known``: of now.

    ``is_changed`` says that text or fields are others now, ``is_reworded`` that the text is.
    """

    state: int
    known: int
    was_withdrawn: bool
    is_withdrawn: bool
    is_changed: bool
    is_reworded: bool

    @property
    def is_restorable(self) -> bool:
        return self.is_withdrawn or self.is_changed


def since_then(part: str, workspace: Workspace, states: Sequence[Any], now: datetime) -> dict[int, Since]:
    """Return what became of some states' rows (``part``: knowledge, observations, key-values), by key. One query.

    A row that is gone is left out.
    """
    model = CURATED[part]
    there = model.objects.filter(workspace=workspace, pk__in=[state.id for state in states]).values_list("pk")
    latest = {state.id: state for state in states_at(model, workspace, now, pks=there.order_by())}
    return {state.id: _since(FROM_FILES[model], state, latest[state.id]) for state in states if state.id in latest}


def _since(fields: Sequence[str], then: Any, now: Any) -> Since:
    different = [name for name in fields if getattr(then, name) != getattr(now, name)]
    return Since(
        state=then.history_id,
        known=now.history_id,
        was_withdrawn=then.withdrawn_at is not None,
        is_withdrawn=now.withdrawn_at is not None,
        is_changed=bool(different),
        is_reworded=any(name in TEXTS for name in different),
    )
