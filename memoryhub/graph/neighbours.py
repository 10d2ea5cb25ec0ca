"""Import semantic graphs and look up neighbours. No model is called here."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from knowledge_app.models import SemanticGraph, Term, TermRelation
from memoryhub.graph.nearest import LEAST, unit_rows
from memoryhub.lib import vectors
from memoryhub.lib.database.prepared import PreparedRows, among
from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import GraphRecord, Problem, TermRecord
from sessions_app.models import Workspace
from sessions_app.models.conversations import KEY_LENGTH

RELATED = 0.7  # minimum cosine of related terms in grid
RARE = 2  # rows of a workspace that hold a word which is worth expanding, at most (measured: search.md)
MOST_WORDS = 64  # per query
MOST_ROWS = 2_000  # relations read per query
MOST_EACH = 3  # neighbours per word
SHARE = 0.5  # factor from a neighbour's cosine to its weight in a search
_OF_WORDS = PreparedRows(
    2,
    lambda workspace, words: (
        TermRelation.objects.filter(term__workspace=workspace, term__text__in=among(words, "text"), is_removed=False)
        .select_related("term", "related")
        .only("cosine", "pinned", "term__text", "related__text")
        .order_by("term_id", "-pinned", "rank", "id")[:MOST_ROWS]
    ),
)


@dataclass(frozen=True)
class Related:
    """A neighbour of a term. ``cosine``: None if unknown, because an imported term has no embedding."""

    term: Term
    cosine: float | None
    pinned: bool = False
    is_removed: bool = False

    @property
    def is_related(self) -> bool:
        """Whether grid or a person considers them related; other neighbours are used only for searches."""
        return self.pinned or self.cosine is None or self.cosine >= RELATED


@dataclass(frozen=True)
class Expansion:
    """A word of a query and a neighbour to search for, with its weight relative to the word (1)."""

    word: str
    related: str
    cosine: float

    @property
    def weight(self) -> float:
        return SHARE * self.cosine


def fingerprint_of(provider: str, model: str, dimensions: int) -> str:
    """Return the fingerprint of comparable embeddings: provider, model and number of dimensions."""
    return f"{provider}/{model}/{dimensions}"


def related(workspace: Workspace, term: str, *, most: int = 100) -> list[Related]:
    """Return a term's neighbours in stored order, except removed ones; [] if it isn't a term. Two queries."""
    rows = TermRelation.objects.filter(term__workspace=workspace, term__text=term, is_removed=False)
    return neighbours_of(rows.order_by("rank", "id")[:most])


def neighbours_of(rows: QuerySet[TermRelation]) -> list[Related]:
    """Return relations with their cosines: stored, or computed if the embeddings are comparable."""
    found = list(rows.select_related("related").defer("related__embedding"))
    cosines = _cosines([row for row in found if row.cosine is None])
    return [Related(row.related, cosines.get(row.pk, row.cosine), row.pinned, row.is_removed) for row in found]


def expand(workspace: Workspace, words: Iterable[str], df: Mapping[str, int]) -> list[Expansion]:
    """Return neighbours to search for in addition to the query's rare words. Two queries (search.md).

    ``df``: the document frequency of each word, 0 if missing. A word in at most two rows gets its three nearest
    neighbours with a cosine of at least 0.5, except words of the query. Related terms without a known cosine count as
    0.7.
    """
    asked = list(dict.fromkeys(word.lower() for word in words))
    rare = [word for word in asked if df.get(word, 0) <= RARE][:MOST_WORDS]
    if not rare:
        return []
    kept = _OF_WORDS.all(workspace.pk, rare)
    cosines = _cosines([row for row in kept if row.cosine is None])
    found: dict[str, list[Expansion]] = defaultdict(list)
    for row in kept:
        cosine = _nearness(cosines.get(row.pk, row.cosine), is_pinned=row.pinned)
        if cosine >= LEAST and row.related.text.lower() not in asked:
            found[row.term.text].append(Expansion(row.term.text, row.related.text, cosine))
    return [
        expansion
        for word in rare
        for expansion in sorted(found[word], key=lambda item: (-item.cosine, item.related))[:MOST_EACH]
    ]


def _nearness(cosine: float | None, *, is_pinned: bool) -> float:
    """Return the cosine used in searches: for pinned relations at least grid's threshold."""
    if cosine is None:
        return RELATED
    return max(cosine, RELATED) if is_pinned else cosine


def _cosines(rows: Sequence[Any]) -> dict[int, float]:
    """Return the cosines of relations whose embeddings are of the same model. One query."""
    if not rows:
        return {}
    pks = {pk for row in rows for pk in (row.term_id, row.related_id)}
    made = Term.objects.filter(pk__in=pks).exclude(fingerprint="").values_list("pk", "fingerprint", "embedding")
    kinds = {pk: (fingerprint, bytes(embedding)) for pk, fingerprint, embedding in made if embedding}
    found = {}
    for row in rows:
        one, other = kinds.get(row.term_id), kinds.get(row.related_id)
        if one and other and one[0] == other[0] and len(one[1]) == len(other[1]):
            first, second = unit_rows([one[1], other[1]])
            found[row.pk] = float(first @ second)
    return found


def import_graph(
    *,
    workspace: Workspace,
    graph: GraphRecord,
    path: str,
    now: datetime,
    dry_run: bool,
    has_own: bool = False,
) -> ImportCounts:
    """Update terms and relations from the file. Terms missing from it stay, without relations.

    A related word that isn't a term becomes one without an embedding. ``has_own``: the hub embeds this workspace's
    terms itself; once it has done so, only new words are imported.
    """
    built_here = SemanticGraph.objects.filter(workspace_id=workspace.pk, built_at_text="", built_at__isnull=False)
    if has_own and built_here.exists():
        return _take_words(workspace, graph, path, now, dry_run=dry_run)
    tally = ImportCounts()
    wanted = {term.text: term for term in graph.terms if _fits(term.text, path, tally)}
    for text in {other for term in graph.terms for other in term.related} - wanted.keys():
        if _fits(text, path, tally):
            wanted[text] = TermRecord(text, [], [])
    known = {term.text: term for term in Term.objects.filter(workspace=workspace)} if workspace.pk else {}
    new = [Term(workspace=workspace, text=text, created_at=now) for text in wanted if text not in known]
    changed = [
        term
        for text, record in wanted.items()
        if _fill(term := known.get(text) or Term(workspace=workspace, text=text), record, graph) and text in known
    ]
    for term in new:
        _fill(term, wanted[term.text], graph)
    tally.added["terms"] += len(new)
    tally.updated["terms"] += len(changed)
    tally.unchanged["terms"] += len(wanted) - len(new) - len(changed)
    if not dry_run:
        with transaction.atomic():
            _write_meta(workspace, graph)
            Term.objects.bulk_create(new, batch_size=500)
            Term.objects.bulk_update(changed, ["embedding", "fingerprint", "extra"], batch_size=500)
            _write_relations(workspace, wanted)
    return tally


def _take_words(workspace: Workspace, graph: GraphRecord, path: str, now: datetime, *, dry_run: bool) -> ImportCounts:
    tally = ImportCounts()
    wanted = [term.text for term in graph.terms if _fits(term.text, path, tally)]
    known = set(Term.objects.filter(workspace=workspace).values_list("text", flat=True))
    new = [Term(workspace=workspace, text=text, created_at=now) for text in wanted if text not in known]
    tally.added["terms"] += len(new)
    tally.unchanged["terms"] += len(wanted) - len(new)
    if not dry_run:
        Term.objects.bulk_create(new, batch_size=500)
    return tally


def _fits(text: str, path: str, tally: ImportCounts) -> bool:
    if 0 < len(text) <= KEY_LENGTH:
        return True
    what = f"a term is {'empty' if not text else f'longer than {KEY_LENGTH} characters'}"
    tally.problems.append(Problem(path, None, what, "skipped", "rejected"))
    return False


def _fill(term: Term, record: TermRecord, graph: GraphRecord) -> bool:
    """Update a term from its record; return whether it changed."""
    embedding = _embedding(record)
    is_whole = bool(embedding) and len(record.embedding) == graph.dimensions
    values = {
        "embedding": embedding,
        "fingerprint": fingerprint_of(graph.provider, graph.model, graph.dimensions) if is_whole else "",
        "extra": record.extra,
    }
    changed = any(
        (bytes(getattr(term, name)) if name == "embedding" else getattr(term, name)) != value
        for name, value in values.items()
    )
    for name, value in values.items():
        setattr(term, name, value)
    return changed


def _embedding(record: TermRecord) -> bytes:
    try:
        return vectors.pack(record.embedding)
    except (OverflowError, struct.error):
        return b""


def _write_meta(workspace: Workspace, graph: GraphRecord) -> None:
    SemanticGraph.objects.update_or_create(
        workspace=workspace,
        defaults={
            "provider": graph.provider,
            "model": graph.model,
            "base_url": graph.base_url,
            "dimensions": graph.dimensions,
            "built_at": graph.built_at,
            "built_at_text": graph.built_at_text,
            "extra": graph.extra,
        },
    )


def _write_relations(workspace: Workspace, wanted: dict[str, TermRecord]) -> None:
    """Replace the relations by those of the file, except pinned and removed ones."""
    ids = dict(Term.objects.filter(workspace=workspace).values_list("text", "pk"))
    now_related = {
        (ids[text], ids[other]): rank
        for text, record in wanted.items()
        for rank, other in enumerate(record.related)
        if other in ids and other != text
    }
    kept = {(row.term_id, row.related_id): row for row in TermRelation.objects.filter(term__workspace=workspace)}
    gone = [row.pk for pair, row in kept.items() if pair not in now_related and not (row.pinned or row.is_removed)]
    for start in range(0, len(gone), 500):
        TermRelation.objects.filter(pk__in=gone[start : start + 500]).delete()
    removed = {pair for pair, row in kept.items() if row.is_removed}
    TermRelation.objects.bulk_create(
        (
            TermRelation(term_id=term, related_id=other, rank=rank, is_removed=(other, term) in removed)
            for (term, other), rank in now_related.items()
            if (term, other) not in kept
        ),
        batch_size=500,
    )
    moved = [row for pair, row in kept.items() if pair in now_related and row.rank != now_related[pair]]
    for row in moved:
        row.rank = now_related[row.term_id, row.related_id]
    TermRelation.objects.bulk_update(moved, ["rank"], batch_size=500)
