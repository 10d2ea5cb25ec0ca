"""Embedding of rows for semantic search: estimates, and whether it is due."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Count, Max, Model, Sum

from knowledge_app.models import Fact, HistoryEntry
from memoryhub.graph.building import Seen
from memoryhub.graph.row_vectors import rows_to_embed
from memoryhub.lib.embeddings import EmbeddingSettings
from sessions_app.models import Session, Summary, Workspace
from sessions_app.services.compressing.model_choice import cost_of, embedding_settings_for

CHARS_PER_TOKEN = 4
_CHANGES: dict[type[Model], tuple[Any, ...]] = {  # fields that show whether rows were added or removed
    Session: (Count("pk"), Max("pk"), Sum("entry_count")),
    Summary: (Count("pk"), Max("pk")),
    Fact: (Count("pk"), Max("pk"), Count("died")),
    HistoryEntry: (Count("pk"), Max("pk"), Count("withdrawn_at")),
}


@dataclass(frozen=True)
class RowOutlook:
    """The number of a workspace's rows to embed, with the estimated tokens and US dollars."""

    settings: EmbeddingSettings
    rows: int
    tokens: int
    cost: Decimal | None


def row_outlook(workspace: Workspace) -> RowOutlook | None:
    """Estimate the work of embedding a workspace's rows, if a provider is configured. One query for each kind."""
    settings = embedding_settings_for(workspace)
    if settings is None:
        return None
    rows, characters = rows_to_embed(workspace.pk)
    tokens = max(rows, characters // CHARS_PER_TOKEN)
    return RowOutlook(settings, rows, tokens, cost_of(settings.model, tokens, 0))


def add_row_states(states: dict[int, Seen], workspaces: Collection[Workspace]) -> dict[int, Seen]:
    """Add a fingerprint of the other rows under "rows" for workspaces with semantic search.

    Four queries, or none if no workspace has it.
    """
    dense = [workspace.pk for workspace in workspaces if workspace.dense_search]
    for pk in dense:
        states[pk]["rows"] = []
    for model, figures in _CHANGES.items() if dense else ():
        rows = model._default_manager.filter(workspace__in=dense).order_by()
        for workspace, *found in rows.values_list("workspace").annotate(*figures):
            states[workspace]["rows"].append([model.__name__, *found])
    return states
