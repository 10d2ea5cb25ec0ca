"""Recall: what a workspace's observations say on a question, by kind (grid's memory_recall)."""

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
    """What was found of each kind, best first; the words asked for; and those that the semantic graph added.

    ``added``: for a word that was asked for, neighbours of it with how much each counts, 0 to 1.
    """

    found: dict[str, list[Recalled]]
    words: list[str] = field(default_factory=list)
    added: dict[str, list[tuple[str, float]]] = field(default_factory=dict)

    @property
    def pairs(self) -> list[tuple[str, list[tuple[str, float]]]]:
        """Return ``added`` as pairs, for templates: a word of a query may be named like a dict's own methods."""
        return list(self.added.items())

    @property
    def texts(self) -> dict[str, list[str]]:
        """Return grid's answer: contents under findings, insights and lessons."""
        return {f"{kind}s": [one.observation.content for one in rows] for kind, rows in self.found.items()}


def recall(workspace: Workspace, query: str, *, now: datetime, limit: int = LIMIT) -> Recall:
    """Return the observations that fit a query best, at most ``limit`` of each kind. Reads only, asks no model.

    A search (``memoryhub.search``) of the living observations, kind by kind; without words it finds nothing.
    """
    limit = max(0, min(limit, MOST))
    asked = parse(query, now=now)
    asked = replace(asked, filters=())  # an agent asks in words
    recalled = Recall({}, [" ".join(term.words) for term in asked.asked])
    for category in Observation.Category:
        of_kind = replace(asked, filters=(Filter("category", (category.value,)),))
        found = find(Scope((workspace.pk,)), of_kind, now=now, kinds=["observation"], limit=limit)
        recalled.found[category.value] = [
            Recalled(hit.row, round(hit.score, 4)) for hit in found.hits if isinstance(hit.row, Observation)
        ]
        recalled.added.update(found.added)
    return recalled


def log_recall(recalled: Recall, now: datetime) -> None:
    """Count that an agent read what was recalled. Reading confirms nothing."""
    pks = [one.observation.pk for rows in recalled.found.values() for one in rows]
    values = {"access_count": Least(F("access_count") + 1, MAX_COUNT), "accessed_at": now}
    db_retry.try_write(lambda: Observation.objects.filter(pk__in=pks).update(**values), "a recall")
