"""Build the semantic graph: create terms, and store embeddings and neighbours.

No model is called here; ``memoryhub.graph.embedding_run`` passes the embeddings in batches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet

from knowledge_app.models import KnowledgeEntry, Observation, SemanticGraph, Term, TermRelation
from memoryhub.graph.keywords import keywords_of
from memoryhub.graph.nearest import Space, unit_rows
from memoryhub.lib.database import db_retry
from sessions_app.models import Run, Workspace
from sessions_app.services.runs import hold_lease

if TYPE_CHECKING:
    from memoryhub.graph.nearest import Rows

MAX_TERMS = 20_000  # per workspace, created from texts: what fits in a worker's memory
CHUNK = 500
Seen = dict[str, Any]


@dataclass(frozen=True)
class Embeddings:
    """A batch of embeddings: the terms' keys, (n, d) unit row vectors, and the model that made them."""

    terms: Sequence[int]
    rows: Rows
    fingerprint: str


@db_retry.retried
def make_terms(workspace: Workspace, now: datetime) -> int:
    """Create terms, without embeddings, for new keywords of the current texts; return how many."""
    known = set(Term.objects.filter(workspace=workspace).values_list("text", flat=True))
    room = MAX_TERMS - len(known)
    missing: dict[str, None] = {}
    for text in _living_texts(workspace):
        missing |= dict.fromkeys(word for word in keywords_of(text) if word not in known)
        if len(missing) >= room:
            break
    new = [Term(workspace=workspace, text=word, created_at=now) for word in list(missing)[: max(0, room)]]
    Term.objects.bulk_create(new, batch_size=CHUNK, ignore_conflicts=True)
    return len(new)


def _living_texts(workspace: Workspace) -> Iterator[str]:
    for model in (Observation, KnowledgeEntry):
        rows: QuerySet[Any, Any] = model.objects.filter(workspace=workspace, withdrawn_at=None)
        yield from rows.order_by("id").values_list("content", flat=True).iterator(chunk_size=CHUNK)


def waiting_terms(workspace_id: int, fingerprint: str, *, after: int | None = None) -> QuerySet[Term]:
    """Return the terms without an embedding of this fingerprint, by key.

    ``after``: also include all terms with a greater key, for a rebuild that has reached this key.
    """
    waiting = ~Q(fingerprint=fingerprint)
    if after is not None:
        waiting |= Q(pk__gt=after)
    return Term.objects.filter(waiting, workspace=workspace_id).order_by("pk")


def states_of(workspaces: Collection[int]) -> dict[int, Seen]:
    """Return a fingerprint of each workspace's texts and terms, to detect changes. Three queries in all."""
    states: dict[int, Seen] = {pk: {"texts": [], "terms": {}} for pk in workspaces}
    for model in (Observation, KnowledgeEntry):
        rows = model.objects.filter(workspace__in=workspaces, withdrawn_at=None).order_by()
        found = rows.values_list("workspace").annotate(Count("pk"), Max("pk"), Max("updated_at"))
        for workspace, count, last, changed in found:
            states[workspace]["texts"].append([model.__name__, count, last, changed.isoformat()])
    terms = Term.objects.filter(workspace__in=workspaces).order_by()
    for workspace, fingerprint, count in terms.values_list("workspace", "fingerprint").annotate(Count("pk")):
        states[workspace]["terms"][fingerprint] = count
    return states


def load_space(workspace_id: int, fingerprint: str) -> Space:
    """Return the space of terms with an embedding of a fingerprint, with their stored neighbours."""
    import numpy as np

    made = Term.objects.filter(workspace=workspace_id, fingerprint=fingerprint).order_by("pk")
    keys: list[int] = []
    parts: list[Rows] = []
    vectors = made.values_list("pk", "embedding").iterator(chunk_size=CHUNK)
    while chunk := [row for _, row in zip(range(CHUNK), vectors, strict=False)]:
        keys += [pk for pk, _ in chunk]
        parts.append(unit_rows([bytes(embedding) for _, embedding in chunk]))
    relations = TermRelation.objects.filter(term__workspace=workspace_id)
    space = Space(keys, np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32), _blocked(relations))
    lists: dict[int, list[tuple[int, float | None]]] = {}
    stored = relations.filter(pinned=False, is_removed=False).order_by("term_id")
    for term, other, cosine in stored.values_list("term_id", "related_id", "cosine").iterator(chunk_size=CHUNK):
        if term in space and other in space:
            lists.setdefault(term, []).append((other, cosine))
    for term, others in lists.items():
        space.remember(term, others)
    return space


def _blocked(relations: QuerySet[TermRelation]) -> set[tuple[int, int]]:
    """Return the pairs that people pinned or removed, in both directions."""
    pinned = set(relations.filter(pinned=True).values_list("term_id", "related_id"))
    removed = set(relations.filter(is_removed=True).values_list("term_id", "related_id"))
    return pinned | removed | {(other, term) for term, other in removed}


@db_retry.retried
@transaction.atomic
def store_batch(run: Run, batch: Embeddings, space: Space, changed: Collection[int]) -> None:
    """Store a batch of embeddings and the changed lists of neighbours in one transaction. Raises LeaseLost.

    ``space`` already contains the batch. The run's cost and progress are stored too. Pinned and removed relations are
    never changed.
    """
    held = hold_lease(run)
    held.options, held.model, held.cost = run.options, run.model, run.cost
    held.prompt_tokens = run.prompt_tokens
    held.save(update_fields=["options", "model", "cost", "prompt_tokens"])
    terms = list(Term.objects.filter(pk__in=batch.terms).only("pk"))
    rows = dict(zip(batch.terms, batch.rows.astype("<f4"), strict=True))
    for term in terms:
        term.embedding, term.fingerprint = rows[term.pk].tobytes(), batch.fingerprint
    Term.objects.bulk_update(terms, ["embedding", "fingerprint"], batch_size=CHUNK)
    _write_neighbours(batch.terms, space, changed)


def _write_neighbours(batch: Sequence[int], space: Space, changed: Collection[int]) -> None:
    wanted = {
        (term, other): (rank, cosine) for term in changed for rank, (other, cosine) in enumerate(space.nearest(term))
    }
    there: dict[tuple[int, int], TermRelation] = {}
    for row in _relations_of(sorted(set(changed) | set(batch)), batch):
        there[row.term_id, row.related_id] = row
    blocked = {pair for pair, row in there.items() if row.pinned or row.is_removed}
    blocked |= {(other, term) for (term, other), row in there.items() if row.is_removed}
    moved, gone = [], []
    for pair, row in there.items():
        place = wanted.get(pair)
        if pair in blocked or row.term_id not in space or row.related_id not in space:
            continue  # decided by a person, or of a term that isn't embedded yet
        if place is None:
            gone.append(row.pk)
        elif (row.rank, row.cosine) != place:
            row.rank, row.cosine = place
            moved.append(row)
    alive = _alive({pk for pair in wanted for pk in pair})
    new = [
        TermRelation(term_id=pair[0], related_id=pair[1], rank=rank, cosine=cosine)
        for pair, (rank, cosine) in wanted.items()
        if pair not in there and pair not in blocked and alive.issuperset(pair)
    ]
    for start in range(0, len(gone), CHUNK):
        TermRelation.objects.filter(pk__in=gone[start : start + CHUNK]).delete()
    TermRelation.objects.bulk_update(moved, ["rank", "cosine"], batch_size=CHUNK)
    TermRelation.objects.bulk_create(new, batch_size=CHUNK)


def _relations_of(terms: Sequence[int], batch: Sequence[int]) -> Iterator[TermRelation]:
    for start in range(0, len(terms), CHUNK):
        yield from TermRelation.objects.filter(term__in=terms[start : start + CHUNK])
    yield from TermRelation.objects.filter(related__in=batch)


def _alive(terms: set[int]) -> set[int]:
    ordered = sorted(terms)
    return {
        pk
        for start in range(0, len(ordered), CHUNK)
        for pk in Term.objects.filter(pk__in=ordered[start : start + CHUNK]).values_list("pk", flat=True)
    }


def record_graph(
    workspace: Workspace, *, provider: str, model: str, base_url: str, dimensions: int, now: datetime
) -> None:
    """Record the model of a workspace's embeddings and the time."""
    values = {"provider": provider, "model": model, "base_url": base_url, "dimensions": dimensions}
    SemanticGraph.objects.update_or_create(
        workspace=workspace, defaults=values | {"built_at": now, "built_at_text": ""}
    )
