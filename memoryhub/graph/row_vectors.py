"""Embeddings of whole rows: which texts are embedded, which wait, and what goes when a text changes or goes.

Nothing here asks a model: who does (``memoryhub.graph.row_embedding``) hands the embeddings over, batch by batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Exists, IntegerField, Max, Model, OuterRef, Q, QuerySet, Sum, TextField
from django.db.models.functions import Length, Substr

from knowledge_app.models import Fact, HistoryEntry, KnowledgeEntry, Observation, RowVector
from memoryhub.graph.building import CHUNK
from memoryhub.graph.nearest import Rows
from memoryhub.lib import db_retry
from memoryhub.lib.secrets import looks_secret
from sessions_app.models import Entry, Run, Summary, Workspace
from sessions_app.services.runs import hold_lease

MOST_ROWS = 20_000  # of a kind, the newest: what is embedded, and what a search compares
MOST_CHARS = 2_000  # of a text
LOOKED_AT = 2_500  # characters in which secrets are looked for, so that none is cut until it looks like one no more


@dataclass(frozen=True)
class Source:
    """One kind of rows that are embedded: their table, the column of their text, and which are alive."""

    model: type[Model]
    column: str = "content"
    living: Q = field(default_factory=Q)


LIVING = Q(withdrawn_at=None)
SOURCES = {  # never key-values or cached responses: their texts are kept exactly, or aren't anybody's memory
    "knowledge": Source(KnowledgeEntry, living=LIVING),
    "observation": Source(Observation, living=LIVING),
    "memory": Source(Fact, column="text", living=Q(died=None)),
    "summary": Source(Summary),
    "history": Source(HistoryEntry, living=LIVING),
    "entry": Source(Entry),
}


@dataclass(frozen=True)
class RowText:
    """A row and the part of its text that is embedded."""

    kind: str
    pk: int
    text: str

    @property
    def hash(self) -> str:
        return hash_of(self.text)


@dataclass(frozen=True)
class RowEmbeddings:
    """One batch as it came: the rows, their embeddings as (n, d) unit rows, and what made them."""

    rows: Sequence[RowText]
    vectors: Rows
    fingerprint: str


def hash_of(text: str) -> str:
    """Return by what a text's embedding knows it."""
    return hashlib.sha256(text.encode()).hexdigest()


def embedded_part(text: str) -> str:
    """Return the part of a text that may be embedded: 2,000 characters; "" for what holds a secret by its looks."""
    part = text[:MOST_CHARS]
    return part if part.strip() and not looks_secret("", text[:LOOKED_AT]) else ""


def with_beginning(kind: str, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return rows of a kind with ``beginning``, the part of their text that an embedding may be of."""
    return _cut(kind, rows, MOST_CHARS)


def texts_of(kind: str, rows: QuerySet[Any]) -> Iterator[RowText]:
    """Yield rows of a kind with the beginnings of their texts, secrets and all: see ``embedded_part``."""
    for pk, text in with_beginning(kind, rows).values_list("pk", "beginning").iterator(chunk_size=CHUNK):
        yield RowText(kind, pk, text)


def _cut(kind: str, rows: QuerySet[Any], characters: int) -> QuerySet[Any]:
    beginning: Any = Substr(SOURCES[kind].column, 1, characters, output_field=TextField())
    cut: QuerySet[Any] = rows.annotate(beginning=beginning)
    return cut


def _newest(workspace_id: int, kind: str) -> QuerySet[Any]:
    source = SOURCES[kind]
    living: QuerySet[Any] = source.model._default_manager.filter(source.living, workspace=workspace_id)
    newest: QuerySet[Any] = living.exclude(**{source.column: ""}).order_by("-pk")[:MOST_ROWS]
    return newest


def rows_to_embed(workspace_id: int) -> tuple[int, int]:
    """Return how many rows a workspace has that are embedded, and how many characters; secrets are counted too."""
    rows = characters = 0
    for kind in SOURCES:
        cut = Length(Substr(SOURCES[kind].column, 1, MOST_CHARS), output_field=IntegerField())
        lengths = _newest(workspace_id, kind).annotate(length=cut)
        found = lengths.aggregate(characters=Sum("length"))
        rows += lengths.count()
        characters += found["characters"] or 0
    return rows, characters


def waiting_rows(workspace_id: int, fingerprint: str, *, after: int = 0) -> list[tuple[str, int]]:
    """Return the rows, (kind, key), that wait for an embedding of a fingerprint, the newest of each kind first.

    ``after``: only vectors with a greater key count, for a rebuild.
    """
    waiting: list[tuple[str, int]] = []
    for kind in SOURCES:
        made = RowVector.objects.filter(workspace=workspace_id, kind=kind, fingerprint=fingerprint, pk__gt=after)
        known = dict(made.values_list("object_id", "text_hash"))
        rows = texts_of(kind, _newest(workspace_id, kind))
        waiting += [(kind, row.pk) for row in rows if known.get(row.pk) != row.hash]
    return waiting


def rows_for(workspace_id: int, keys: Sequence[tuple[str, int]]) -> list[RowText]:
    """Return rows with what may be embedded of them as they are now, without those of which nothing may."""
    found: dict[tuple[str, int], RowText] = {}
    for kind, source in SOURCES.items():
        pks = [pk for name, pk in keys if name == kind]
        if not pks:
            continue
        rows = source.model._default_manager.filter(source.living, workspace=workspace_id, pk__in=pks)
        for pk, text in _cut(kind, rows, LOOKED_AT).values_list("pk", "beginning"):
            found[kind, pk] = RowText(kind, pk, embedded_part(text))
    return [found[key] for key in keys if key in found and found[key].text]


@db_retry.retried
def sweep_vectors(workspace_id: int) -> int:
    """Remove the vectors whose row is gone, withdrawn, not among the newest or says something else; count them."""
    gone: list[int] = []
    for kind in SOURCES:
        made = RowVector.objects.filter(workspace=workspace_id, kind=kind)
        if not made.exists():
            continue
        now = {row.pk: row.hash for row in texts_of(kind, _newest(workspace_id, kind))}
        vectors = made.values_list("pk", "object_id", "text_hash").iterator(chunk_size=CHUNK)
        gone += [pk for pk, row, known in vectors if now.get(row) != known]
    for start in range(0, len(gone), CHUNK):
        RowVector.objects.filter(pk__in=gone[start : start + CHUNK]).delete()
    return len(gone)


def drop_unwanted_vectors() -> None:
    """Remove the vectors of workspaces whose searches don't compare meanings any more; one query where none has."""
    held = Exists(RowVector.objects.filter(workspace=OuterRef("pk")))
    off = list(Workspace.objects.filter(held, dense_search=False).values_list("pk", flat=True))
    if off:
        RowVector.objects.filter(workspace__in=off).delete()


def newest_vector() -> int:
    """Return the greatest key of a vector there is."""
    return RowVector.objects.aggregate(last=Max("pk"))["last"] or 0


@db_retry.retried
@transaction.atomic
def store_vectors(run: Run, batch: RowEmbeddings) -> None:
    """Write one batch's embeddings in the place of earlier ones, with what the run has cost. Raises LeaseLost."""
    held = hold_lease(run)
    held.options, held.model, held.cost = run.options, run.model, run.cost
    held.prompt_tokens = run.prompt_tokens
    held.save(update_fields=["options", "model", "cost", "prompt_tokens"])
    for kind in {row.kind for row in batch.rows}:
        pks = [row.pk for row in batch.rows if row.kind == kind]
        RowVector.objects.filter(workspace=run.workspace_id, kind=kind, object_id__in=pks).delete()
    RowVector.objects.bulk_create(
        [
            RowVector(
                workspace_id=run.workspace_id,
                kind=row.kind,
                object_id=row.pk,
                fingerprint=batch.fingerprint,
                text_hash=row.hash,
                vector=vector.tobytes(),
            )
            for row, vector in zip(batch.rows, batch.vectors.astype("<f4"), strict=True)
        ],
        batch_size=CHUNK,
    )
