"""The graph of a workspace's memory with its layout, computed when it is asked for and cached by revision.

The cache is valid until the memory changes. New messages alone don't invalidate it before there are 2 % more of them.
It contains words of the memory, so a stale one is deleted within minutes, and every erasure deletes it at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet, Sum

from knowledge_app.models import GraphLayout, KnowledgeEntry, Observation, TermRelation
from memoryhub.graph.memory_graph import KINDS, MemoryGraph, Node, build_graph, term_key
from memoryhub.graph.memory_texts import memory_texts
from memoryhub.graph.placement import place_nodes
from memoryhub.graph.similar_owners import similar_owners
from memoryhub.lib.database import db_retry
from sessions_app.models import AuditRecord, Session, Workspace

VERSION = 4  # of the code that makes the graph
MORE_MESSAGES = 0.02
MOST_RELATIONS = 20_000
MIN_RADIUS, MAX_RADIUS = 4.0, 22.0
WITHOUT_EFFECT = (  # changes that aren't of the memory
    "entry.added",
    "session.imported",
    "secrets.revealed",
    "document.revealed",
    "key_value.revealed",
    "rows.exported",
    "audit.exported",
    "job.downloaded",
    "token.made",
    "token.revoked",
    "oauth.allowed",
    "oauth.reused",
)
CATEGORIES = dict(KnowledgeEntry.Category.choices) | dict(Observation.Category.choices)
NODE_COLUMNS = ("key", "label", "kind", "x", "y", "size", "community", "degree", "count", "first", "last")


@dataclass(frozen=True)
class ShownNode:
    """A node as pages show it. ``kind``: its place in KINDS; ``first`` and ``last``: days as ISO dates, or ""."""

    key: str
    label: str
    kind: int
    x: int
    y: int
    size: float
    community: int
    degree: int
    count: int
    first: str
    last: str

    @property
    def kind_name(self) -> str:
        return KINDS[self.kind]

    @property
    def category(self) -> str:
        """The category that the node is; "" for other nodes."""
        name = self.key.removeprefix("tag:")
        return name if self.kind_name == "tag" and name in CATEGORIES else ""

    @property
    def name(self) -> str:
        """The label in the reader's language."""
        return str(CATEGORIES[self.category]) if self.category else self.label


@dataclass(frozen=True)
class ShownGraph:
    """The graph of a workspace: nodes, the most important first, and edges (two places, strength, kind)."""

    nodes: list[ShownNode]
    edges: list[tuple[int, int, float, int]]
    left_out: int
    built_at: datetime

    def neighbours(self, place: int) -> list[tuple[ShownNode, float]]:
        """Return the neighbours of the node at a place with their strength, the closest first."""
        found = [
            (self.nodes[other if one == place else one], strength)
            for one, other, strength, _kind in self.edges
            if place in (one, other)
        ]
        return sorted(found, key=lambda item: (-item[1], item[0].key))


def graph_of(workspace: Workspace, now: datetime) -> ShownGraph:
    """Return the graph of a workspace, from the cache if it is current. Computing it takes up to a few seconds."""
    cached = GraphLayout.objects.filter(workspace=workspace).first()
    if cached is None or not _is_current(cached, workspace):
        cached = _computed(workspace, now)
        db_retry.try_write(lambda: _store(cached), "a graph")
    return _shown(cached)


def drop_graph(workspace: Workspace) -> None:
    """Delete a workspace's cached graph."""
    GraphLayout.objects.filter(workspace=workspace).delete()


def drop_stale_graphs() -> None:
    """Delete the cached graphs that no longer show what their workspace's memory is."""
    for cached in GraphLayout.objects.select_related("workspace").defer("data"):
        if not _is_current(cached, cached.workspace):
            GraphLayout.objects.filter(pk=cached.pk).delete()


def _is_current(cached: GraphLayout, workspace: Workspace) -> bool:
    if cached.version != VERSION or _changes(workspace).filter(pk__gt=cached.revision).exists():
        return False
    most = cached.message_count + max(5, math.ceil(cached.message_count * MORE_MESSAGES))
    return cached.message_count <= _message_count(workspace) <= most


def _changes(workspace: Workspace) -> QuerySet[AuditRecord]:
    return AuditRecord.objects.filter(workspace=workspace).exclude(action__in=WITHOUT_EFFECT)


def _message_count(workspace: Workspace) -> int:
    return Session.objects.filter(workspace=workspace).aggregate(total=Sum("entry_count"))["total"] or 0


def _computed(workspace: Workspace, now: datetime) -> GraphLayout:
    """Return the unsaved layout. The revision is read first, so that later changes invalidate it."""
    revision = AuditRecord.objects.filter(workspace=workspace).aggregate(last=Max("pk"))["last"] or 0
    messages = _message_count(workspace)
    texts = list(memory_texts(workspace))
    graph = build_graph(texts, [*_relations(workspace), *similar_owners(workspace, texts)])
    return GraphLayout(
        workspace=workspace,
        version=VERSION,
        revision=revision,
        message_count=messages,
        data=_data(graph),
        built_at=now,
    )


def _relations(workspace: Workspace) -> list[tuple[str, str, float]]:
    """Return the nodes of related terms of the semantic graph, with their cosines."""
    rows = TermRelation.objects.filter(term__workspace=workspace, is_removed=False).order_by("pk")
    found = rows.values_list("term__text", "related__text", "cosine", "pinned")[:MOST_RELATIONS]
    return [
        (term_key(one), term_key(other), 1.0 if pinned else cosine or 0.7) for one, other, cosine, pinned in found
    ]


def _data(graph: MemoryGraph) -> dict[str, Any]:
    """Return what is cached: nodes and edges as lists, in the order of NODE_COLUMNS and ``ShownGraph.edges``."""
    degree = [0] * len(graph.nodes)
    for edge in graph.edges:
        degree[edge.one] += 1
        degree[edge.other] += 1
    sizes = _sizes(graph.nodes)
    placement = place_nodes(sizes, [(edge.one, edge.other, edge.strength) for edge in graph.edges])
    nodes = [
        [
            node.key,
            node.label,
            KINDS.index(node.kind),
            *placement.positions[place],
            sizes[place],
            placement.communities[place],
            degree[place],
            node.count,
            node.first.date().isoformat() if node.first else "",
            node.last.date().isoformat() if node.last else "",
        ]
        for place, node in enumerate(graph.nodes)
    ]
    edges = [[edge.one, edge.other, edge.strength, edge.kind] for edge in graph.edges]
    return {"nodes": nodes, "edges": edges, "left_out": graph.left_out}


def _sizes(nodes: list[Node]) -> list[float]:
    """Return radii: the area grows with the weight."""
    most = max((node.weight for node in nodes), default=1.0)
    return [round(MIN_RADIUS + (MAX_RADIUS - MIN_RADIUS) * math.sqrt(node.weight / most), 1) for node in nodes]


def _store(computed: GraphLayout) -> None:
    """Replace the cached graph, unless the memory has changed while it was computed.

    An erasure locks the workspace too, so a graph with erased words can't be stored after it.
    """
    workspace = Workspace.objects.select_for_update().filter(pk=computed.workspace_id).first()
    if workspace is None or not _is_current(computed, workspace):
        return
    values = {name: getattr(computed, name) for name in ("version", "revision", "message_count", "data", "built_at")}
    with transaction.atomic():
        GraphLayout.objects.update_or_create(workspace=workspace, defaults=values)


def _shown(cached: GraphLayout) -> ShownGraph:
    nodes = [ShownNode(**dict(zip(NODE_COLUMNS, row, strict=True))) for row in cached.data["nodes"]]
    edges = [(one, other, strength, kind) for one, other, strength, kind in cached.data["edges"]]
    return ShownGraph(nodes, edges, cached.data["left_out"], cached.built_at)
