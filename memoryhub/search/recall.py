"""Recall: what best matches a question: observations by category (grid's memory_recall), and other memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import F, Model
from django.db.models.functions import Least
from django.utils.translation import gettext

from knowledge_app.models import KnowledgeEntry, Observation
from knowledge_app.services.rows.row_changes import MAX_COUNT
from memoryhub.lib.database import db_retry
from memoryhub.lib.search.query import Filter, Query, parse
from memoryhub.search import Scope, find, semantic
from memoryhub.search.correcting import Corrections, correction_notes
from memoryhub.search.counts import INCOMPLETE, MILLISECONDS, Clock, KnownCounts, count_rows_by_term
from memoryhub.search.filters import filtered_kinds
from memoryhub.search.ranking import RankOptions
from memoryhub.search.results import text_of, workspace_of

LIMIT = 5  # of each kind, grid's default
MOST = 100
MEMORY_KINDS = ("memory", "knowledge", "key_value", "history")


@dataclass(frozen=True)
class Recalled:
    """One observation with its score, higher is better."""

    observation: Observation
    score: float


@dataclass(frozen=True)
class RecalledMemory:
    """A fact, knowledge entry, key-value or history entry. ``text``: as in search results, secrets masked."""

    kind: str
    row: Model

    @property
    def text(self) -> str:
        return text_of(self.kind, self.row)


@dataclass
class Recall:
    """Observations by category, best first; the query's words; and the words that the semantic graph added.

    ``memories``: matches of the other kinds, best first. ``added``: for each query word, its graph neighbours among
    observations with weights from 0 to 1. ``corrected``: the words searched for instead of those that no row
    contains, by typed word. ``is_partial``: a search took too long, so that results may be missing.
    """

    found: dict[str, list[Recalled]]
    words: list[str] = field(default_factory=list)
    added: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    memories: list[RecalledMemory] = field(default_factory=list)
    corrected: Corrections = field(default_factory=dict)
    is_partial: bool = False

    @property
    def pairs(self) -> list[tuple[str, list[tuple[str, float]]]]:
        """Return ``added`` as pairs: in a template, a word such as "items" would shadow the dict's method."""
        return list(self.added.items())

    @property
    def notes(self) -> list[str]:
        return [*correction_notes(self.corrected), *([gettext(INCOMPLETE)] if self.is_partial else [])]

    @property
    def texts(self) -> dict[str, list[str]]:
        """Return grid's response: texts under findings, insights and lessons."""
        return {f"{kind}s": [one.observation.content for one in rows] for kind, rows in self.found.items()}

    @property
    def document(self) -> dict[str, Any]:
        """Return grid's response, the other matches and their kinds as ``memories``, ``corrected`` and ``notes``."""
        memories = [
            {"kind": one.kind, "id": one.row.pk, "text": one.text, "workspace": workspace_of(one.kind, one.row).slug}
            for one in self.memories
        ]
        found = {"memories": memories, "corrected": self.corrected, "notes": self.notes}
        return {"findings": [], "insights": [], "lessons": []} | self.texts | found

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return what the access log needs of all rows: kind, id and workspace."""
        learned: list[tuple[str, Model]] = [
            ("observation", one.observation) for rows in self.found.values() for one in rows
        ]
        found = learned + [(one.kind, one.row) for one in self.memories]
        return [{"kind": kind, "id": row.pk, "workspace": workspace_of(kind, row).slug} for kind, row in found]


def recall(scope: Scope, query: str, *, now: datetime, limit: int = LIMIT) -> Recall:
    """Return the best matches: ``limit`` observations of each category and ``limit`` other memories.

    An empty query has no matches. Held rows are left out. Reads only, calls no model.
    """
    limit = max(0, min(limit, MOST))
    asked = parse(query, now=now)
    asked = replace(asked, filters=())  # agents send plain words: no field syntax
    options = _shared(scope, asked, now)
    others = find(scope, asked, now=now, kinds=MEMORY_KINDS, options=options, limit=limit)
    options = replace(options, corrected=others.corrected)
    recalled = Recall({}, [" ".join(term.words) for term in asked.ranked_terms], is_partial=others.is_partial)
    for category in Observation.Category:
        of_kind = replace(asked, filters=(Filter("category", (category.value,)),))
        found = find(scope, of_kind, now=now, kinds=["observation"], options=options, limit=limit)
        recalled.found[category.value] = [
            Recalled(hit.row, round(hit.score, 4)) for hit in found.hits if isinstance(hit.row, Observation)
        ]
        recalled.added.update(found.added)
        recalled.is_partial = recalled.is_partial or found.is_partial
        options = replace(options, corrected=found.corrected)
    recalled.corrected = options.corrected
    recalled.memories = [RecalledMemory(hit.kind, hit.row) for hit in others.hits]
    return recalled


def _shared(scope: Scope, asked: Query, now: datetime) -> RankOptions:
    """Ask and count once what all searches of a recall need."""
    question, known, clock = semantic.ask(scope, asked, now=now), KnownCounts(), Clock(MILLISECONDS)
    kinds = filtered_kinds(scope, asked, (*MEMORY_KINDS, "observation"))
    count_rows_by_term(kinds, asked.ranked_terms, clock, known)
    return RankOptions(dense=question is not None, question=question, known=known)


def log_recall(recalled: Recall, now: datetime) -> None:
    """Count an agent's read of observations and knowledge; a read doesn't confirm them."""
    pks = [one.observation.pk for rows in recalled.found.values() for one in rows]
    values = {"access_count": Least(F("access_count") + 1, MAX_COUNT), "accessed_at": now}
    entries = [one.row.pk for one in recalled.memories if one.kind == "knowledge"]

    def count() -> None:
        if pks:
            Observation.objects.filter(pk__in=pks).update(**values)
        if entries:
            KnowledgeEntry.objects.filter(pk__in=entries).update(**values)

    if pks or entries:
        db_retry.try_write(count, "a recall")
