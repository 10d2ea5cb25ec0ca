"""Semantic search: rows whose embedding is close to the query's, if the workspace enables it.

Used only for plain-word queries. If anything is missing or slow, the search falls back to word matches and adds a
note. Filters apply as they do to words; a vector counts only while its row still has the embedded text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection
from django.db.models import F
from django.utils.translation import gettext, gettext_noop

from memoryhub.graph.neighbours import fingerprint_of
from memoryhub.graph.row_vectors import hash_of, with_beginning
from memoryhub.lib.database.prepared import PreparedRows
from memoryhub.lib.embeddings import EmbeddingSettings, provider_error
from memoryhub.lib.search.factors import Decay, recency_factor
from memoryhub.lib.search.hits import WeightedTerm
from memoryhub.lib.search.matching import SearchTooSlow, time_limit
from memoryhub.lib.search.query import Query
from memoryhub.lib.search.query_tokens import tokenize
from memoryhub.lib.search.scoring import RowShares, ScoredRow, TermWeights
from memoryhub.lib.secrets import looks_secret
from memoryhub.search import query_embedding
from memoryhub.search.embedding_check import known_weight, semantic_weight
from memoryhub.search.filters import FilteredKind, Scope
from memoryhub.search.vector_cache import Matrix, Version, matrices_of, versions_of
from sessions_app.models import Workspace
from sessions_app.services.compressing.model_choice import embedding_settings_for
from sessions_app.services.compressing.token_budget import budget_left

if TYPE_CHECKING:
    from memoryhub.lib.embeddings import Rows

MIN_COSINE = 0.3  # minimum cosine
MEANING = 0.3  # factor from the cosine above that minimum to a score; the best match of all words scores 1
MOST = 100  # results of each kind
LOOKED_AT = 2_000  # nearest rows of a kind to check against the filters
MILLISECONDS = 120  # to load vectors, and again to filter their rows
CHUNK = 500
NONE_YET = gettext_noop("No embeddings yet: only words were compared.")
UNANSWERED = gettext_noop("The embedding provider didn't answer in time: only words were compared.")
UNFIT = gettext_noop("The stored embeddings are from another model: only words are compared until they are rebuilt.")
SPENT = gettext_noop("Today's token budget is used up: only words were compared.")
DISAGREES = gettext_noop(
    "The embeddings don't agree with the words of this workspace's rows: only words were compared."
)
_ENABLED = PreparedRows(1, lambda pk: Workspace.objects.filter(pk=pk, dense_search=True))
SLOW = gettext_noop("Some embeddings couldn't be compared in time; the next search continues.")


class NearRow(NamedTuple):
    """A row that is near in meaning. ``recency``: the factor for its age."""

    pk: int
    cosine: float
    recency: float = 1.0


Near = list[NearRow]  # nearest first


@dataclass(frozen=True)
class Question:
    """A query whose embedding was requested: ``wait`` returns it, or None. ``note``: why it wasn't requested."""

    workspace_id: int
    settings: EmbeddingSettings
    wait: Callable[[], Rows | None] = lambda: None
    versions: Mapping[str, Version] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class SemanticMatches:
    """Semantic matches by kind, their weight beside matches of words (0 to 1), and a note for the user."""

    by_kind: dict[str, Near] = field(default_factory=dict)
    note: str = ""
    weight: float = 0.0


def ask(scope: Scope, query: Query, *, now: datetime) -> Question | None:
    """Request the embedding of a query's words; return None where semantic search doesn't apply.

    It applies to a single workspace that enables it, to words of which none is required or half typed, and that don't
    look like a secret. Costs one database query where it doesn't apply.
    """
    if scope.home is None or query.required or not query.terms or any(term.is_prefix for term in query.terms):
        return None
    workspace = _ENABLED.first(scope.home)
    if workspace is None:
        return None
    settings = embedding_settings_for(workspace)
    text = plain_words(query)
    if settings is None or provider_error(settings.provider) or looks_secret("", text):
        return None
    versions = versions_of(workspace.pk)
    if not versions:
        return Question(workspace.pk, settings, note=gettext(NONE_YET))
    if known_weight(workspace.pk, _model(settings), versions) == 0:
        return Question(workspace.pk, settings, note=gettext(DISAGREES))
    if budget_left(workspace, now) == 0:
        return Question(workspace.pk, settings, note=gettext(SPENT))
    return Question(workspace.pk, settings, query_embedding.request(settings, text), versions)


def _model(settings: EmbeddingSettings) -> str:
    return f"{settings.provider}/{settings.model}"


def plain_words(query: Query) -> str:
    """Return the words of a query as typed, without filters and excluded words."""
    tokens = tokenize(query.text)
    return " ".join(token.text for token in tokens if not (token.field or token.is_excluded))


def nearest(question: Question, filtered_list: Iterable[FilteredKind], decay: Decay) -> SemanticMatches:
    """Return the filtered rows that are closest to the query, at most 100 of each kind.

    Waits for the embedding as long as ``query_embedding`` allows, and about 240 ms for the database.
    """
    if question.note:
        return SemanticMatches(note=question.note)
    asked = question.wait()
    if asked is None:
        return SemanticMatches(note=gettext(UNANSWERED))
    try:
        with time_limit(connection, 2 * MILLISECONDS):
            return _compared(question, asked, filtered_list, decay)
    except SearchTooSlow:
        return SemanticMatches(note=gettext(SLOW))


def _compared(
    question: Question, asked: Rows, filtered_list: Iterable[FilteredKind], decay: Decay
) -> SemanticMatches:
    fingerprint = fingerprint_of(question.settings.provider, question.settings.model, len(asked))
    until = time.monotonic() + MILLISECONDS / 1000
    matrices = matrices_of(question.workspace_id, fingerprint, dict(question.versions), until=until)
    if not any(matrix.keys for matrix in matrices.values()):
        return SemanticMatches(note=gettext(UNFIT))
    weight = semantic_weight(question.workspace_id, _model(question.settings), question.versions, matrices)
    if not weight:
        return SemanticMatches(note=gettext(DISAGREES))
    found: dict[str, Near] = {}
    for filtered in filtered_list:
        matrix = matrices.get(filtered.kind.name)
        near = _still_matching(filtered, matrix, _near(matrix, asked), decay) if matrix else []
        if near:
            found[filtered.kind.name] = near
    note = "" if all(matrix.is_whole for matrix in matrices.values()) else gettext(SLOW)
    return SemanticMatches(found, note, weight)


def _near(matrix: Matrix, asked: Rows) -> list[tuple[int, float]]:
    """Return the (index, cosine) of the nearest vectors, nearest first."""
    if matrix.rows is None:
        return []
    import numpy as np

    cosines = matrix.rows @ asked
    places = np.flatnonzero(cosines >= MIN_COSINE)
    ordered = places[np.argsort(-cosines[places], kind="stable")][:LOOKED_AT]
    return [(place, min(1.0, float(cosines[place]))) for place in ordered.tolist()]


def _still_matching(filtered: FilteredKind, matrix: Matrix, near: Sequence[tuple[int, float]], decay: Decay) -> Near:
    """Return the near rows that pass the filters and still have the embedded text."""
    rows = replace(filtered, index_query=replace(filtered.index_query, terms=())).matches()
    found: list[NearRow] = []
    for start in range(0, len(near), CHUNK):
        chunk = {matrix.keys[place]: (matrix.hashes[place], cosine) for place, cosine in near[start : start + CHUNK]}
        for pk, beginning, at in _texts(filtered, rows, list(chunk)):
            known, cosine = chunk[pk]
            if hash_of(beginning) == known:
                found.append(NearRow(pk, cosine, recency_factor(at, decay)))
        if len(found) >= MOST:
            break
    return sorted(found, key=lambda one: (-one.cosine * one.recency, -one.pk))[:MOST]


def _texts(filtered: FilteredKind, rows: Any, pks: Sequence[int]) -> Iterable[tuple[int, str, datetime | None]]:
    kept = with_beginning(filtered.kind.name, rows.filter(pk__in=pks)).annotate(embedded_at=F(filtered.kind.time))
    texts: Iterable[tuple[int, str, datetime | None]] = kept.order_by().values_list("pk", "beginning", "embedded_at")
    return texts


def fused(scored: Sequence[ScoredRow], near: Near, weight: float) -> list[ScoredRow]:
    """Return what words found and what is near in meaning as one list, by the sum of both scores.

    Scores of words are divided by the best one and multiplied with its coverage, so that meaning decides more where
    no row has all the words. Meaning adds at most ``MEANING * weight``. Fusing by ranks was measured: it buries good
    matches of words under rows of the same topic. Rows that only meaning found hold nothing of the words.
    """
    known = {one.pk: one for one in scored}
    cosines = {one.pk: one.cosine for one in near}
    meaning = {one.pk: MEANING * weight * (one.cosine - MIN_COSINE) * one.recency for one in near}
    scale = scored[0].coverage / scored[0].score if scored and scored[0].score else 0.0
    scores = {one.pk: one.score * scale for one in scored}
    rows = [
        replace(
            known.get(pk) or _without_words(pk),
            score=scores.get(pk, 0.0) + meaning.get(pk, 0.0),
            cosine=cosines.get(pk, 0.0),
            meaning=meaning.get(pk, 0.0),
        )
        for pk in scores | meaning
    ]
    return sorted(rows, key=lambda one: (-one.score, -one.cosine, -one.pk))


def _without_words(pk: int) -> ScoredRow:
    return ScoredRow(pk, 0.0, RowShares({}, {}, 0), {}, coverage=0.0)


def measure_without_words(query: Query) -> TermWeights:
    """Return the term_weights of a kind whose rows hold none of a query's words."""
    terms = tuple(WeightedTerm(term.words, term.is_prefix) for term in query.ranked_terms)
    return TermWeights(terms, (0.0,) * len(terms), 1.0)
