"""Recall: what a workspace's observations say on a question, by kind (grid's memory_recall)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import F
from django.db.models.functions import Least

from knowledge_app.models import Observation
from knowledge_app.services.changes import MAX_COUNT
from knowledge_app.services.graph import expand
from memoryhub.lib.bm25 import count_documents, query_words, rank, stem, terms_of
from sessions_app.models import Workspace

LIMIT = 5  # of each kind, grid's default
MOST = 100
COMPARED = 20_000  # of the latest observations


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


def recall(workspace: Workspace, query: str, *, limit: int = LIMIT) -> Recall:
    """Return the observations that fit a query best, at most ``limit`` of each kind. Reads only, asks no model.

    BM25 over content and source of the living observations, with this workspace's own frequencies; a word that they
    hardly know is helped by its neighbours in the semantic graph. A query without words finds nothing.
    """
    limit = max(0, min(limit, MOST))
    rows = list(Observation.objects.filter(workspace=workspace, withdrawn_at=None).order_by("-id")[:COMPARED])
    words = query_words(query)
    documents = [terms_of(f"{row.content} {row.source}", wanted=words) for row in rows]
    frequency = count_documents(documents)
    added: dict[str, list[tuple[str, float]]] = {}
    for near in expand(workspace, words, {word: frequency[stem(word)] for word in words}):
        added.setdefault(near.word, []).append((near.related, near.weight))
    weights = {stem(word): weight for near in added.values() for word, weight in near}
    weights |= {stem(word): 1.0 for word in words}
    found: dict[str, list[Recalled]] = {category.value: [] for category in Observation.Category}
    for index, score in rank(weights, documents):
        kept = found[rows[index].category]
        if len(kept) < limit:
            kept.append(Recalled(rows[index], round(score, 4)))
    return Recall(found, words, added)


def note_reading(recalled: Recall, now: datetime) -> None:
    """Count that an agent read what was recalled. Reading confirms nothing."""
    pks = [one.observation.pk for rows in recalled.found.values() for one in rows]
    Observation.objects.filter(pk__in=pks).update(
        access_count=Least(F("access_count") + 1, MAX_COUNT), accessed_at=now
    )
