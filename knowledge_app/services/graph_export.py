"""The semantic graph as the file that grid keeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC
from typing import Any

from django.db.models import Q

from knowledge_app.models import SemanticGraph, Term, TermRelation
from knowledge_app.services.graph import RELATED, fingerprint_of
from memoryhub.lib import vectors
from memoryhub.lib.layouts.graph import graph_text
from sessions_app.models import Workspace

BATCH_TERMS = 500
OWN_FIELDS = ("embedding", "related")


def graph_document(workspace: Workspace) -> dict[str, Any]:
    """Return a workspace's graph as the JSON of semantic_graph.json.

    Terms are sorted by name; what stands near only for searches, or was removed by a person, is left out, and so is
    the embedding of another model than the graph's. A graph of a file that nobody changed comes back as it was.
    """
    return {"meta": _meta(workspace), "terms": dict(_terms(workspace))}


def graph_parts(workspace: Workspace) -> Iterator[str]:
    """Yield the text of semantic_graph.json in parts, as grid writes it."""
    return graph_text(_meta(workspace), _terms(workspace))


def _meta(workspace: Workspace) -> dict[str, Any]:
    graph = SemanticGraph.objects.filter(workspace=workspace).first() or SemanticGraph()
    built = graph.built_at.astimezone(UTC).isoformat().replace("+00:00", "Z") if graph.built_at else ""
    return {
        "provider": graph.provider,
        "model": graph.model,
        **({"base_url": graph.base_url} if graph.base_url else {}),
        "dimensions": graph.dimensions,
        "built_at": graph.built_at_text or built,
        **graph.extra,
    }


def _terms(workspace: Workspace) -> Iterator[tuple[str, dict[str, Any]]]:
    graph = SemanticGraph.objects.filter(workspace=workspace).first() or SemanticGraph()
    own = ("", fingerprint_of(graph.provider, graph.model, graph.dimensions))
    texts = dict(Term.objects.filter(workspace=workspace).values_list("pk", "text"))
    related = _related(workspace, texts)
    ordered = sorted(texts, key=texts.__getitem__)
    for start in range(0, len(ordered), BATCH_TERMS):
        batch = ordered[start : start + BATCH_TERMS]
        rows = Term.objects.in_bulk(batch)
        for row in (rows[pk] for pk in batch if pk in rows):
            embedding = vectors.unpack(bytes(row.embedding)) if row.fingerprint in own else []
            extra = {name: value for name, value in row.extra.items() if name not in OWN_FIELDS}
            if embedding or related[row.pk] or extra:  # else a mere word: grid has no term of it
                yield row.text, {"embedding": embedding, "related": related[row.pk], **extra}


def _related(workspace: Workspace, texts: dict[int, str]) -> dict[int, list[str]]:
    shown = TermRelation.objects.filter(term__workspace=workspace, is_removed=False)
    shown = shown.filter(Q(cosine__isnull=True) | Q(cosine__gte=RELATED) | Q(pinned=True))
    found: dict[int, list[str]] = defaultdict(list)
    for term, other in shown.order_by("rank", "id").values_list("term_id", "related_id"):
        if other in texts:
            found[term].append(texts[other])
    return found
