"""The graph of a workspace's memory: the page, its data, and one node."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.functional import Promise
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from knowledge_app.models import Term
from memoryhub.graph.graph_cache import ShownGraph, ShownNode, graph_of
from memoryhub.graph.memory_graph import KINDS
from memoryhub.graph.node_rows import rows_of
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import Page, parse_int, parse_ints
from memoryhub.lib.search.tokenizing import fold
from memoryhub.permissions import get_workspace, log_page_access
from sessions_app.models import Workspace

ROWS = 100  # of the table on one page
SHOWN_NEIGHBOURS = 14
BRIEF_ROWS = 3
LABELS: dict[str, tuple[Promise, Promise]] = {  # one, many
    "person": (_("Person"), _("People")),
    "project": (_("Project"), _("Projects")),
    "section": (_("Section"), _("Memory sections")),
    "tag": (_("Tag"), _("Tags")),
    "session": (_("Conversation"), _("Conversations")),
    "term": (_("Term"), _("Terms")),
}


@require_GET
def memory_graph(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    graph = graph_of(workspace, timezone.now())
    kind, text = request.GET.get("kind", ""), request.GET.get("q", "").strip()
    chosen = [
        node
        for node in graph.nodes
        if (not kind or node.kind_name == kind) and (not text or fold(text) in fold(node.name))
    ]
    number = max(1, parse_int(request.GET.get("page"), digits=4) or 1)
    shown = chosen[(number - 1) * ROWS : number * ROWS]
    context = {
        "workspace": workspace,
        "graph": graph,
        "kinds": [(name, LABELS[name][1], count) for name, count in _counts(graph) if count],
        "rows": [_table_row(slug, node) for node in shown],
        "page": _page(request, number, len(chosen)),
        "count": len(chosen),
        "kind": kind,
        "text": text,
        "is_filtered": bool(kind or text),
    }
    return render_page(request, "graph/memory_graph.html", context, fragment="graph-table")


@require_GET
def memory_graph_data(request: HttpRequest, slug: str) -> JsonResponse:
    """Return nodes and edges for the script: lists in the order of NODE_COLUMNS and of ``ShownGraph.edges``."""
    workspace = get_workspace(request, slug)
    graph = graph_of(workspace, timezone.now())
    nodes = [
        [node.key, node.name, node.kind, node.x, node.y, node.size, node.community, node.degree, node.first]
        for node in graph.nodes
    ]
    names = [str(LABELS[name][0]) for name in KINDS]
    return JsonResponse({"kinds": KINDS, "names": names, "nodes": nodes, "edges": graph.edges})


@require_GET
def memory_graph_node(request: HttpRequest, slug: str) -> HttpResponse:
    """One node: its rows, its neighbours and where to read on."""
    workspace = get_workspace(request, slug)
    if "node" not in request.GET:
        return redirect("graph", slug)
    context = _node_context(request, workspace)
    return render_page(request, "graph/memory_graph_node.html", context, fragment="graph-node")


@require_GET
def memory_graph_facts(request: HttpRequest, slug: str) -> HttpResponse:
    """The first rows of a node, for the card at the pointer."""
    workspace = get_workspace(request, slug)
    if "node" not in request.GET:
        return redirect("graph", slug)
    context = _node_context(request, workspace, most=BRIEF_ROWS)
    return render(request, "graph/memory_graph_node.html#graph-facts", context)


def _node_context(request: HttpRequest, workspace: Workspace, most: int | None = None) -> dict[str, Any]:
    graph = graph_of(workspace, timezone.now())
    key = request.GET.get("node", "")
    place = next((place for place, node in enumerate(graph.nodes) if node.key == key), None)
    if place is None:
        raise Http404
    node = graph.nodes[place]
    rows = rows_of(workspace, node)[:most]
    log_page_access(request, workspace, "graph.read", [row.seen for row in rows])
    return {
        "workspace": workspace,
        "node": node,
        "kind_label": LABELS[node.kind_name][0],
        "first": parse_date(node.first) if node.first else None,
        "last": parse_date(node.last) if node.last else None,
        "rows": rows,
        "neighbours": [
            (other, LABELS[other.kind_name][0], node_url(workspace.slug, other))
            for other, _strength in graph.neighbours(place)[:SHOWN_NEIGHBOURS]
        ],
        "links": _links(workspace, node),
    }


def node_url(slug: str, node: ShownNode) -> str:
    return f"{reverse('graph-node', args=[slug])}?{urlencode({'node': node.key})}"


def _links(workspace: Workspace, node: ShownNode) -> list[tuple[Promise, str]]:
    """Return where to read on about a node."""
    slug, (kind, _colon, rest) = workspace.slug, node.key.partition(":")
    links: list[tuple[Promise, str]] = []
    numbers = parse_ints([rest.partition(":")[0]])
    if kind == "session":
        return [(_("Open the session"), reverse("sessions:detail", args=[slug, number])) for number in numbers]
    if kind == "section":
        links += [(_("Open the document"), reverse("documents:document", args=[slug, number])) for number in numbers]
        links += [(_("Facts"), reverse("documents:facts", args=[slug, number])) for number in numbers]
        return links
    query = node.label
    if kind == "tag":
        query = f"category:{node.category}" if node.category else f'tag:"{node.label}"'
    links.append((_("Search"), f"{reverse('search', args=[slug])}?{urlencode({'q': query})}"))
    if kind == "term" and (
        term := Term.objects.filter(any_case("text__iexact", node.label), workspace=workspace).first()
    ):
        links.append((_("Neighbours in meaning"), reverse("term", args=[slug, term.pk])))
    return links


def _counts(graph: ShownGraph) -> list[tuple[str, int]]:
    return [(name, sum(node.kind == number for node in graph.nodes)) for number, name in enumerate(KINDS)]


def _table_row(slug: str, node: ShownNode) -> dict[str, Any]:
    return {
        "node": node,
        "kind": LABELS[node.kind_name][0],
        "url": node_url(slug, node),
        "first": parse_date(node.first) if node.first else None,
        "last": parse_date(node.last) if node.last else None,
    }


def _page(request: HttpRequest, number: int, count: int) -> Page[Any]:
    def url(page: int) -> str:
        query = request.GET.copy()
        query["page"] = str(page)
        return f"?{query.urlencode()}#graph-table"

    last = max(1, -(-count // ROWS))
    return Page(
        [],
        first_url=url(1) if number > 1 else "",
        previous_url=url(number - 1) if number > 1 else "",
        next_url=url(number + 1) if number < last else "",
        last_url=url(last) if number < last else "",
    )
