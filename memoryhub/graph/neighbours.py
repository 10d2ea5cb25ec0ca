"""Taking a semantic graph from its file, and asking it for neighbours. No model is ever asked here."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from knowledge_app.models import SemanticGraph, Term, TermRelation
from memoryhub.graph.nearest import LEAST, unit_rows
from memoryhub.lib import vectors
from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import GraphRecord, Problem, TermRecord
from sessions_app.models import Workspace
from sessions_app.models.conversations import KEY_LENGTH

RELATED = 0.7  # cosine from which grid calls two terms related
RARE = 2  # rows of a workspace that hold a word which is worth expanding, at most (measured: search.md)
MOST_WORDS = 64  # of one query
MOST_ROWS = 2_000  # relations looked at for one query
MOST_EACH = 3  # neighbours that one word brings
SHARE = 0.5  # of a cosine is what a neighbour weighs in a search


@dataclass(frozen=True)
class Related:
    """A neighbour of a term. ``cosine`` is None where it can't be known: a file says so, and one has no embedding."""

    term: Term
    cosine: float | None
    pinned: bool = False
    is_removed: bool = False

    @property
    def is_related(self) -> bool:
        """Whether grid would call them related, or a person did; the others only help searches."""
        return self.pinned or self.cosine is None or self.cosine >= RELATED


@dataclass(frozen=True)
class Expansion:
    """A word of a query and a neighbour to look for besides, with what it weighs against the word itself (1)."""

    word: str
    related: str
    cosine: float

    @property
    def weight(self) -> float:
        return SHARE * self.cosine


def fingerprint_of(provider: str, model: str, dimensions: int) -> str:
    """Return what embeddings must share to be compared: provider, model and number of dimensions."""
    return f"{provider}/{model}/{dimensions}"


def related(workspace: Workspace, term: str, *, most: int = 100) -> list[Related]:
    """Return the neighbours of a term in their stored order, those that a person removed left out; two queries.

    [] for a word that is no term.
    """
    rows = TermRelation.objects.filter(term__workspace=workspace, term__text=term, is_removed=False)
    return neighbours_of(rows.order_by("rank", "id")[:most])


def neighbours_of(rows: QuerySet[TermRelation]) -> list[Related]:
    """Return relations with their cosines: the stored one, else that of the two embeddings where they compare."""
    found = list(rows.select_related("related").defer("related__embedding"))
    cosines = _cosines([row for row in found if row.cosine is None])
    return [Related(row.related, cosines.get(row.pk, row.cosine), row.pinned, row.is_removed) for row in found]


def expand(workspace: Workspace, words: Iterable[str], df: Mapping[str, int]) -> list[Expansion]:
    """Return neighbours by which a search may look further, for the words that a workspace hardly knows.

    ``df``: in how many of its rows each word stands; one that isn't named there stands in none. Of a word that
    stands in at most two, the three nearest from a cosine of 0.5 on; never a word of the query itself. What a file or
    a person calls related without a known cosine counts as 0.7. Two queries, of stored rows only (search.md).
    """
    asked = list(dict.fromkeys(word.lower() for word in words))
    rare = [word for word in asked if df.get(word, 0) <= RARE][:MOST_WORDS]
    if not rare:
        return []
    rows = TermRelation.objects.filter(term__workspace=workspace, term__text__in=rare, is_removed=False)
    rows = rows.select_related("term", "related").defer("term__embedding", "related__embedding")
    kept = list(rows.order_by("term_id", "-pinned", "rank", "id")[:MOST_ROWS])
    cosines = _cosines([row for row in kept if row.cosine is None])
    found: dict[str, list[Expansion]] = defaultdict(list)
    for row in kept:
        cosine = _nearness(cosines.get(row.pk, row.cosine), row)
        if cosine >= LEAST and row.related.text.lower() not in asked:
            found[row.term.text].append(Expansion(row.term.text, row.related.text, cosine))
    return [
        expansion
        for word in rare
        for expansion in sorted(found[word], key=lambda item: (-item.cosine, item.related))[:MOST_EACH]
    ]


def _nearness(cosine: float | None, row: TermRelation) -> float:
    """Return the cosine that counts for a search: at least grid's own for what a person calls related."""
    if cosine is None:
        return RELATED
    return max(cosine, RELATED) if row.pinned else cosine


def _cosines(rows: list[TermRelation]) -> dict[int, float]:
    """Return, by relation, the cosines of those whose embeddings one model made; one query."""
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
    """Bring terms and relations in line with the file; terms that it no longer has stay, without a relation from it.

    A related word that is no term of its own becomes a term without an embedding. ``has_own``: the hub embeds this
    workspace's terms itself; once it has, a file brings only words that are new, for the hub to embed.
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
    tally.problems.append(Problem(path, None, what, "not taken", "rejected"))
    return False


def _fill(term: Term, record: TermRecord, graph: GraphRecord) -> bool:
    """Set a term's values from its record; tell whether one changed."""
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
    """Make the relations those of the file; what a person pinned or removed stays as they left it."""
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
