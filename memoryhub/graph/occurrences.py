"""Occurrences of a word in an agent's memory."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import QuerySet

from knowledge_app.models import KnowledgeEntry, Observation
from memoryhub.graph.keywords import has_word
from memoryhub.lib.database.any_case import any_case
from sessions_app.models import Workspace

MOST_LOOKED_AT = 200  # rows containing the substring that are checked for the whole word
SHOWN = 10
RowT = TypeVar("RowT", Observation, KnowledgeEntry)


def rows_with_word(rows: QuerySet[RowT], workspace: Workspace, word: str) -> list[RowT]:
    """Return current rows of a workspace that contain a word, latest first. One query."""
    found = rows.filter(any_case("content__icontains", word), workspace=workspace, withdrawn_at=None)
    return [row for row in found.order_by("-id")[:MOST_LOOKED_AT] if has_word(row.content, word)][:SHOWN]
