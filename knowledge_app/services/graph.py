"""Taking a semantic graph from its file."""

from __future__ import annotations

import struct
from datetime import datetime

from django.db import transaction

from knowledge_app.models import SemanticGraph, Term, TermRelation
from memoryhub.lib import vectors
from memoryhub.lib.layouts.records import GraphRecord, Problem, TermRecord
from memoryhub.lib.tally import Tally
from sessions_app.models import Workspace
from sessions_app.models.conversations import KEY_LENGTH


def fingerprint(graph: GraphRecord) -> str:
    """Return what embeddings must share to be compared: provider, model and number of dimensions."""
    return f"{graph.provider}/{graph.model}/{graph.dimensions}"


def take_graph(*, workspace: Workspace, graph: GraphRecord, path: str, now: datetime, dry_run: bool) -> Tally:
    """Bring terms and relations in line with the file; terms that it no longer has stay, without a relation from it.

    A related word that is no term of its own becomes a term without an embedding.
    """
    tally = Tally()
    wanted = {term.text: term for term in graph.terms if _fits(term.text, path, tally)}
    for text in {related for term in graph.terms for related in term.related} - wanted.keys():
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


def _fits(text: str, path: str, tally: Tally) -> bool:
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
        "fingerprint": fingerprint(graph) if is_whole else "",
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
        (ids[text], ids[related]): rank
        for text, record in wanted.items()
        for rank, related in enumerate(record.related)
        if related in ids and related != text
    }
    kept = {(row.term_id, row.related_id): row for row in TermRelation.objects.filter(term__workspace=workspace)}
    gone = [row.pk for pair, row in kept.items() if pair not in now_related and not (row.pinned or row.is_removed)]
    for start in range(0, len(gone), 500):
        TermRelation.objects.filter(pk__in=gone[start : start + 500]).delete()
    TermRelation.objects.bulk_create(
        (
            TermRelation(term_id=term, related_id=related, rank=rank)
            for (term, related), rank in now_related.items()
            if (term, related) not in kept
        ),
        batch_size=500,
    )
    moved = [row for pair, row in kept.items() if pair in now_related and row.rank != now_related[pair]]
    for row in moved:
        row.rank = now_related[row.term_id, row.related_id]
    TermRelation.objects.bulk_update(moved, ["rank"], batch_size=500)
