"""Recall: the observations that best match a question, by category (grid's memory_recall)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db.models import F
from django.db.models.functions import Least

from knowledge_app.models import Observation
from knowledge_app.services.rows.row_changes import MAX_COUNT
from memoryhub.lib import db_retry
from memoryhub.lib.search.query import Filter, parse
from memoryhub.search import Scope, find
from sessions_app.models import Workspace

LIMIT = 5  # of each kind, grid's default
MOST = 100


@dataclass(frozen=True)
class Recalled:
    """One observation with its score, higher is better."""

    observation: Observation
    score: float


@dataclass(frozen=True)
class Recall:
    """Observations by category, best first; the query's words; and the words that the semantic graph added.

    ``added``: for each query word, its graph neighbours with weights from 0 to 1.
    """

    found: dict[str, list[Recalled]]
    words: list[str] = field(default_factory=list)
    added: dict[str, list[tuple[str, float]]] = field(default_factory=dict)

    @property
    def pairs(self) -> list[tuple[str, list[tuple[str, float]]]]:
        """Return ``added`` as pairs: in a template, a word such as "items" would shadow the dict's method."""
        return list(self.added.items())

    @property
    def texts(self) -> dict[str, list[str]]:
        """Return grid's response: texts under findings, insights and lessons."""
        return {f"{kind}s": [one.observation.content for one in rows] for kind, rows in self.found.items()}


def recall(workspace: Workspace, query: str, *, now: datetime, limit: int = LIMIT) -> Recall:
    """Return the best matching observations, at most ``limit`` of each category. Reads only, calls no model.

    An empty query has no matches.
    """
    limit = max(0, min(limit, MOST))
    asked = parse(query, now=now)
    asked = replace(asked, filters=())  # agents send plain words: no field syntax
    recalled = Recall({}, [" ".join(term.words) for term in asked.ranked_terms])
    for category in Observation.Category:
        of_kind = replace(asked, filters=(Filter("category", (category.value,)),))
        found = find(Scope((workspace.pk,)), of_kind, now=now, kinds=["observation"], limit=limit)
        recalled.found[category.value] = [
            Recalled(hit.row, round(hit.score, 4)) for hit in found.hits if isinstance(hit.row, Observation)
        ]
        recalled.added.update(found.added)
    return recalled


def log_recall(recalled: Recall, now: datetime) -> None:
    """Count an agent's read of observations; a read doesn't confirm them."""
    pks = [one.observation.pk for rows in recalled.found.values() for one in rows]
    values = {"access_count": Least(F("access_count") + 1, MAX_COUNT), "accessed_at": now}
    db_retry.try_write(lambda: Observation.objects.filter(pk__in=pks).update(**values), "a recall")
