"""The dense leg of a search: rows whose meaning is near that of the query, where a workspace asks for it.

Off unless the workspace's settings switch it on, for questions in words and nothing stricter. Whatever is missing or
slow, the search has what its words found, and a note. Filters hold as they do for words; a vector counts only while
its row is there and says what was embedded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import F
from django.utils.translation import gettext, gettext_noop

from memoryhub.graph.neighbours import fingerprint_of
from memoryhub.graph.row_vectors import hash_of, with_beginning
from memoryhub.lib.embeddings import EmbeddingSettings, Rows, provider_error
from memoryhub.lib.search.factors import FUSED, Decay, recency_factor
from memoryhub.lib.search.hits import Weighted
from memoryhub.lib.search.matching import SearchTooSlow, within
from memoryhub.lib.search.query import Query
from memoryhub.lib.search.query_tokens import pieces_of
from memoryhub.lib.search.rank import Held, Measure, Scored
from memoryhub.lib.secrets import looks_secret
from memoryhub.search import query_embedding
from memoryhub.search.filters import FilteredKind, Scope
from memoryhub.search.vector_cache import Matrix, Version, matrices_of, versions_of
from sessions_app.models import Workspace
from sessions_app.services.model_choice import embedding_settings_for
from sessions_app.services.token_budget import budget_left

LEAST = 0.3  # cosine from which a row is near at all
MOST = 100  # rows of a kind
LOOKED_AT = 2_000  # of a kind's nearest, where filters leave few of them
MILLISECONDS = 120  # for reading vectors, and as long again for looking at their rows
CHUNK = 500
NONE_YET = gettext_noop("No row has its embedding yet: words alone were compared.")
UNANSWERED = gettext_noop("The embedding provider didn't answer in time: words alone were compared.")
UNFIT = gettext_noop("The stored embeddings are another model's: words alone were compared until they are made anew.")
SPENT = gettext_noop("Today's tokens are used up: words alone were compared.")
SLOW = gettext_noop("Not all embeddings could be compared in time; the next search goes on with them.")
Near = list[tuple[int, float]]  # keys with their cosines, the nearest first


@dataclass(frozen=True)
class Question:
    """A query that is on its way to be compared by meaning: ``wait`` returns its embedding, or None.

    ``note``: why it isn't compared at all, where it isn't.
    """

    workspace_id: int
    settings: EmbeddingSettings
    wait: Callable[[], Rows | None] = lambda: None
    versions: Mapping[str, Version] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Nearest:
    """By kind the rows that are near, and what is to be said of the search."""

    by_kind: dict[str, Near] = field(default_factory=dict)
    note: str = ""


def ask(scope: Scope, query: Query, *, now: datetime) -> Question | None:
    """Begin to ask for the embedding of a query's words; None where only words are to be compared.

    That is unless one workspace is searched that wants meanings compared, by words of which none is required or half
    typed, and that don't look like a secret. One query where that isn't wanted.
    """
    if scope.only is None or query.required or not query.terms or any(term.is_prefix for term in query.terms):
        return None
    workspace = Workspace.objects.filter(pk=scope.only, dense_search=True).first()
    settings = embedding_settings_for(workspace) if workspace else None
    text = plain_words(query)
    if workspace is None or settings is None or provider_error(settings.provider) or looks_secret("", text):
        return None
    versions = versions_of(workspace.pk)
    if not versions:
        return Question(workspace.pk, settings, note=gettext(NONE_YET))
    if budget_left(workspace, now) == 0:
        return Question(workspace.pk, settings, note=gettext(SPENT))
    return Question(workspace.pk, settings, query_embedding.begin(settings, text), versions)


def plain_words(query: Query) -> str:
    """Return what a query asks in words, as it was typed: without its filters and what it excludes."""
    pieces = pieces_of(query.text)
    return " ".join(piece.text for piece in pieces if not (piece.field or piece.is_excluded))


def nearest(question: Question, fittings: Iterable[FilteredKind], decay: Decay) -> Nearest:
    """Return the rows that fit a query's filters and are near to it in meaning, at most 100 of a kind.

    Waits for the embedding as long as ``query_embedding`` does, and some 240 ms for the database.
    """
    if question.note:
        return Nearest(note=question.note)
    asked = question.wait()
    if asked is None:
        return Nearest(note=gettext(UNANSWERED))
    try:
        with within(connection, 2 * MILLISECONDS):
            return _compared(question, asked, fittings, decay)
    except SearchTooSlow:
        return Nearest(note=gettext(SLOW))


def _compared(question: Question, asked: Rows, fittings: Iterable[FilteredKind], decay: Decay) -> Nearest:
    fingerprint = fingerprint_of(question.settings.provider, question.settings.model, len(asked))
    until = time.monotonic() + MILLISECONDS / 1000
    matrices = matrices_of(question.workspace_id, fingerprint, dict(question.versions), until=until)
    if not any(matrix.keys for matrix in matrices.values()):
        return Nearest(note=gettext(UNFIT))
    found: dict[str, Near] = {}
    for fitting in fittings:
        matrix = matrices.get(fitting.kind.name)
        near = _fitting(fitting, matrix, _near(matrix, asked), decay) if matrix else []
        if near:
            found[fitting.kind.name] = near
    return Nearest(found, "" if all(matrix.is_whole for matrix in matrices.values()) else gettext(SLOW))


def _near(matrix: Matrix, asked: Rows) -> list[tuple[int, float]]:
    """Return the places of the vectors that are near, with their cosines, the nearest first."""
    if matrix.rows is None:
        return []
    cosines = matrix.rows @ asked
    places = np.flatnonzero(cosines >= LEAST)
    ordered = places[np.argsort(-cosines[places], kind="stable")][:LOOKED_AT]
    return [(place, min(1.0, float(cosines[place]))) for place in ordered.tolist()]


def _fitting(fitting: FilteredKind, matrix: Matrix, near: Sequence[tuple[int, float]], decay: Decay) -> Near:
    """Return those of the near rows that the filters leave and that still say what was embedded."""
    rows = replace(fitting, wanted=replace(fitting.wanted, terms=())).matches()
    found: list[tuple[float, int, float]] = []
    for start in range(0, len(near), CHUNK):
        chunk = {matrix.keys[place]: (matrix.hashes[place], cosine) for place, cosine in near[start : start + CHUNK]}
        for pk, beginning, at in _texts(fitting, rows, list(chunk)):
            known, cosine = chunk[pk]
            if hash_of(beginning) == known:
                found.append((cosine * recency_factor(at, decay), pk, cosine))
        if len(found) >= MOST:
            break
    return [(pk, cosine) for _, pk, cosine in sorted(found, key=lambda item: (-item[0], -item[1]))[:MOST]]


def _texts(fitting: FilteredKind, rows: Any, pks: Sequence[int]) -> Iterable[tuple[int, str, datetime | None]]:
    kept = with_beginning(fitting.kind.name, rows.filter(pk__in=pks)).annotate(embedded_at=F(fitting.kind.time))
    texts: Iterable[tuple[int, str, datetime | None]] = kept.order_by().values_list("pk", "beginning", "embedded_at")
    return texts


def fused(scored: Sequence[Scored], near: Near) -> list[Scored]:
    """Return what words found and what is near in meaning as one list, by reciprocal rank fusion.

    A place gives ``1 / (60 + place)`` in either list. Rows that only meaning found hold nothing of the words.
    """
    known = {one.pk: one for one in scored}
    cosines = dict(near)
    scores = {one.pk: 1 / (FUSED + place) for place, one in enumerate(scored, start=1)}
    for place, (pk, _) in enumerate(near, start=1):
        scores[pk] = scores.get(pk, 0.0) + 1 / (FUSED + place)
    rows = [
        replace(known.get(pk) or _without_words(pk), score=score, cosine=cosines.get(pk, 0.0))
        for pk, score in scores.items()
    ]
    return sorted(rows, key=lambda one: (-one.score, -one.cosine, -one.pk))


def _without_words(pk: int) -> Scored:
    return Scored(pk, 0.0, Held({}, {}, 0), {}, author=1.0, recency=1.0, coverage=0.0)


def measure_without_words(query: Query) -> Measure:
    """Return the measure of a kind whose rows hold none of a query's words."""
    terms = tuple(Weighted(term.words, term.is_prefix) for term in query.asked)
    return Measure(terms, (0.0,) * len(terms), 1.0)
