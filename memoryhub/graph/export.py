"""Export the semantic graph in grid's format."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from knowledge_app.models import SemanticGraph, Term, TermRelation
from memoryhub.graph.grid_json import graph_text
from memoryhub.graph.neighbours import RELATED, fingerprint_of
from memoryhub.lib import vectors
from sessions_app.models import Workspace

BATCH_TERMS = 500
OWN_FIELDS = ("embedding", "related")
_CREDENTIALS = re.compile(r"(?<=://)[^/?#]*@")


def graph_document(workspace: Workspace) -> dict[str, Any]:
    """Return a workspace's graph as the JSON of semantic_graph.json.

    Terms are sorted by name. Neighbours used only for searches, relations removed by a person and embeddings of other
    models are omitted. An unchanged graph is exported as it was imported.
    """
    return {"meta": _meta(workspace), "terms": dict(_terms(workspace))}


def graph_parts(workspace: Workspace) -> Iterator[str]:
    """Yield the text of semantic_graph.json in parts, formatted as by grid."""
    return graph_text(_meta(workspace), _terms(workspace))


def _meta(workspace: Workspace) -> dict[str, Any]:
    graph = SemanticGraph.objects.filter(workspace=workspace).first() or SemanticGraph()
    built = graph.built_at.astimezone(UTC).isoformat().replace("+00:00", "Z") if graph.built_at else ""
    return {
        "provider": graph.provider,
        "model": graph.model,
        **({"base_url": without_password(graph.base_url)} if graph.base_url else {}),
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
            if embedding or related[row.pk] or extra:  # otherwise it is only a word, not a term of grid
                yield row.text, {"embedding": embedding, "related": related[row.pk], **extra}


def _related(workspace: Workspace, texts: dict[int, str]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for term, other in _shown_relations(workspace).order_by("rank", "id").values_list("term_id", "related_id"):
        if other in texts:
            found[term].append(texts[other])
    return found


def _shown_relations(workspace: Workspace) -> QuerySet[TermRelation]:
    shown = TermRelation.objects.filter(term__workspace=workspace, is_removed=False)
    return shown.filter(Q(cosine__isnull=True) | Q(cosine__gte=RELATED) | Q(pinned=True))


def graph_meta(workspace: Workspace) -> dict[str, Any]:
    """Return the fields of a graph record that describe the model of a workspace's graph."""
    graph = SemanticGraph.objects.filter(workspace=workspace).first() or SemanticGraph()
    return {
        "provider": graph.provider,
        "model": graph.model,
        "base_url": without_password(graph.base_url),
        "dimensions": graph.dimensions,
        **({"built_at": graph.built_at.astimezone(UTC).isoformat()} if graph.built_at else {}),
        "built_at_text": graph.built_at_text,
        "extra": graph.extra,
    }


def graph_rows(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """Yield the terms of a graph: text, embedding, related terms in order, further fields."""
    for text, term in _terms(workspace):
        extra = {name: value for name, value in term.items() if name not in OWN_FIELDS}
        yield {"text": text, "embedding": term["embedding"], "related": term["related"], "extra": extra}


def count_terms(workspace: Workspace) -> int:
    """Return the number of terms that ``graph_rows`` yields, without loading embeddings."""
    graph = SemanticGraph.objects.filter(workspace=workspace).first() or SemanticGraph()
    own = ("", fingerprint_of(graph.provider, graph.model, graph.dimensions))
    named = _shown_relations(workspace).filter(term=OuterRef("pk"))
    terms = Term.objects.filter(workspace=workspace)
    has_embedding = Q(fingerprint__in=own) & ~Q(embedding=b"")
    return terms.filter(has_embedding | ~Q(extra={}) | Q(Exists(named))).count()


def without_password(url: str) -> str:
    """Return an address without its user name and password."""
    return _CREDENTIALS.sub("", url)
