"""Occurrences of a word in an agent's memory."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import QuerySet

from knowledge_app.models import KnowledgeEntry, Observation
from memoryhub.graph.keywords import has_word
from memoryhub.lib.database.any_case import any_case
from sessions_app.models import Workspace

MOST_LOOKED_AT = 200  # rows containing the substring that are checked for the whole word
RowT = TypeVar("RowT", Observation, KnowledgeEntry)


def observations_with(workspace: Workspace, word: str, *, most: int = 10) -> list[Observation]:
    """Return current observations that contain a word, latest first. One query."""
    return _with_word(Observation.objects.filter(workspace=workspace, withdrawn_at=None), word, most)


def knowledge_with(workspace: Workspace, word: str, *, most: int = 10) -> list[KnowledgeEntry]:
    """Return current knowledge entries that contain a word, latest first. One query."""
    return _with_word(KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at=None), word, most)


def _with_word(rows: QuerySet[RowT], word: str, most: int) -> list[RowT]:
    found = rows.filter(any_case("content__icontains", word)).order_by("-id")[:MOST_LOOKED_AT]
    return [row for row in found if has_word(row.content, word)][:most]
