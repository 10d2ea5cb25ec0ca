"""Embeddings of rows: find rows to embed, store vectors, and remove outdated ones. No model is called here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    IntegerField,
    Max,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Sum,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Concat, Length, Substr

from knowledge_app.models import Fact, HistoryEntry, KnowledgeEntry, Observation, RowVector
from memoryhub.graph.building import CHUNK
from memoryhub.lib.database import db_retry
from memoryhub.lib.secrets import looks_secret
from sessions_app.models import Entry, Run, Summary, Workspace
from sessions_app.querysets import IN_CONVERSATION
from sessions_app.services.runs import hold_lease

if TYPE_CHECKING:
    from memoryhub.graph.nearest import Rows

MOST_ROWS = 20_000  # newest rows of each kind that are embedded and searched
MOST_CHARS = 2_000  # characters per text
LOOKED_AT = 2_500  # characters searched for secrets, so that none is cut off beyond recognition


@dataclass(frozen=True)
class Source:
    """A kind of rows to embed: the table, its text column, and the filter of current rows.

    ``author``: the column of a name that precedes the text, as questions name who said something.
    """

    model: type[Model]
    column: str = "content"
    author: str = ""
    living: Q = field(default_factory=Q)


LIVING = Q(withdrawn_at=None)
SOURCES = {  # not key-values (exact lookups) or cached responses (not memory)
    "knowledge": Source(KnowledgeEntry, living=LIVING),
    "observation": Source(Observation, living=LIVING),
    "memory": Source(Fact, column="text", living=Q(died=None)),
    "summary": Source(Summary),
    "history": Source(HistoryEntry, living=LIVING),
    "entry": Source(Entry, author="name", living=IN_CONVERSATION),
}


@dataclass(frozen=True)
class RowText:
    """A row and the embedded part of its text."""

    kind: str
    pk: int
    text: str

    @property
    def hash(self) -> str:
        return hash_of(self.text)


@dataclass(frozen=True)
class RowEmbeddings:
    """A batch of embeddings: the rows, (n, d) unit row vectors, and the model that made them."""

    rows: Sequence[RowText]
    vectors: Rows
    fingerprint: str


def hash_of(text: str) -> str:
    """Return the hash stored with a text's embedding."""
    return hashlib.sha256(text.encode()).hexdigest()


def embedded_part(text: str) -> str:
    """Return the first 2,000 characters of a text, or "" if it seems to contain a secret."""
    part = text[:MOST_CHARS]
    return part if part.strip() and not looks_secret("", text[:LOOKED_AT]) else ""


def with_beginning(kind: str, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate rows of a kind with ``beginning``, the part of their text from which the embedded part is taken."""
    return _cut(kind, rows, MOST_CHARS)


def texts_of(kind: str, rows: QuerySet[Any]) -> Iterator[RowText]:
    """Yield rows of a kind with the beginnings of their texts, including secrets; see ``embedded_part``."""
    for pk, text in with_beginning(kind, rows).values_list("pk", "beginning").iterator(chunk_size=CHUNK):
        yield RowText(kind, pk, text)


def _cut(kind: str, rows: QuerySet[Any], characters: int) -> QuerySet[Any]:
    beginning: Any = Substr(_text(SOURCES[kind]), 1, characters, output_field=TextField())
    cut: QuerySet[Any] = rows.annotate(beginning=beginning)
    return cut


def _text(source: Source) -> Any:
    if not source.author:
        return F(source.column)
    named = Concat(source.author, Value(": "), source.column, output_field=TextField())
    return Case(When(~Q(**{source.author: ""}), then=named), default=source.column, output_field=TextField())


def _newest(workspace_id: int, kind: str) -> QuerySet[Any]:
    source = SOURCES[kind]
    living: QuerySet[Any] = source.model._default_manager.filter(source.living, workspace=workspace_id)
    newest: QuerySet[Any] = living.exclude(**{source.column: ""}).order_by("-pk")[:MOST_ROWS]
    return newest


def rows_to_embed(workspace_id: int) -> tuple[int, int]:
    """Return the number of a workspace's rows to embed and their characters, including secrets."""
    rows = characters = 0
    for kind in SOURCES:
        cut = Length(Substr(_text(SOURCES[kind]), 1, MOST_CHARS), output_field=IntegerField())
        lengths = _newest(workspace_id, kind).annotate(length=cut)
        found = lengths.aggregate(rows=Count("length"), characters=Sum("length"))
        rows += found["rows"]
        characters += found["characters"] or 0
    return rows, characters


def waiting_rows(workspace_id: int, fingerprint: str, *, after: int = 0) -> list[tuple[str, int]]:
    """Return the (kind, key) of rows without an embedding of a fingerprint, the newest of each kind first.

    ``after``: consider only vectors with a greater key, for a rebuild.
    """
    waiting: list[tuple[str, int]] = []
    for kind in SOURCES:
        made = RowVector.objects.filter(workspace=workspace_id, kind=kind, fingerprint=fingerprint, pk__gt=after)
        known = dict(made.values_list("object_id", "text_hash"))
        rows = texts_of(kind, _newest(workspace_id, kind))
        waiting += [(kind, row.pk) for row in rows if known.get(row.pk) != row.hash]
    return waiting


def rows_for(workspace_id: int, keys: Sequence[tuple[str, int]]) -> list[RowText]:
    """Return rows with the embedded parts of their current texts, except rows that must not be embedded."""
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
    """Remove vectors whose row is gone, withdrawn, changed or not among the newest; return how many."""
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
    """Remove the vectors of workspaces without semantic search. One query if there are none."""
    held = Exists(RowVector.objects.filter(workspace=OuterRef("pk")))
    off = list(Workspace.objects.filter(held, dense_search=False).values_list("pk", flat=True))
    if off:
        RowVector.objects.filter(workspace__in=off).delete()


def newest_vector() -> int:
    """Return the greatest primary key of the vectors."""
    return RowVector.objects.aggregate(last=Max("pk"))["last"] or 0


@db_retry.retried
@transaction.atomic
def store_vectors(run: Run, batch: RowEmbeddings) -> None:
    """Replace the vectors of a batch of rows and record the run's cost. Raises LeaseLost."""
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
