"""Which rows of a snapshot differ from now and can be restored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from knowledge_app.services.decisions import FROM_FILES
from memoryhub.time_travel.rows import CURATED, states_at
from sessions_app.models import Workspace

TEXTS = ("content", "value")


@dataclass(frozen=True)
class ChangeSince:
    """How an existing row changed since a snapshot. ``state``: key of the state then; ``known``: of the state now.

    ``is_changed``: any field differs; ``is_reworded``: the text differs.
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


def changes_since(part: str, workspace: Workspace, states: Sequence[Any], now: datetime) -> dict[int, ChangeSince]:
    """Return how the rows of some states changed since, by key, without deleted rows. One query.

    ``part``: knowledge, observations or key-values.
    """
    model = CURATED[part]
    there = model.objects.filter(workspace=workspace, pk__in=[state.id for state in states]).values_list("pk")
    latest = {state.id: state for state in states_at(model, workspace, now, pks=there.order_by())}
    return {state.id: _since(FROM_FILES[model], state, latest[state.id]) for state in states if state.id in latest}


def _since(fields: Sequence[str], then: Any, now: Any) -> ChangeSince:
    different = [name for name in fields if getattr(then, name) != getattr(now, name)]
    return ChangeSince(
        state=then.history_id,
        known=now.history_id,
        was_withdrawn=then.withdrawn_at is not None,
        is_withdrawn=now.withdrawn_at is not None,
        is_changed=bool(different),
        is_reworded=any(name in TEXTS for name in different),
    )
