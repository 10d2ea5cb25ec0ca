"""The semantic graph: its terms, its model, and rebuilding it."""

from __future__ import annotations

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from knowledge_app.models import SemanticGraph, Term
from memoryhub.graph.embedding_run import outlook, request_embedding
from memoryhub.graph.export import graph_parts
from memoryhub.graph.forms import TermFilterForm
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page
from memoryhub.permissions import EDITOR, by_person, get_workspace, has_role
from sessions_app.models import Run
from sessions_app.services.workspace_runs import latest_run


def terms(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    form = TermFilterForm(request.GET)
    wishes = form.cleaned_data if form.is_valid() else {}
    rows = Term.objects.filter(workspace=workspace)
    if text := wishes.get("q"):
        rows = rows.filter(any_case("text__icontains", text))
    living = Q(relations__is_removed=False)
    page = keyset_page(
        rows.defer("embedding").annotate(neighbour_count=Count("relations", filter=living)),
        order=("text",),
        params=request.GET,
        size=100,
    )
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "count": rows.count(),
        "is_filtered": any(wishes.values()),
        "graph": SemanticGraph.objects.filter(workspace=workspace).first(),
        "outlook": outlook(workspace),
        "run": latest_run(workspace, Run.Kind.EMBEDDING),
        "may_edit": has_role(request.user, workspace, EDITOR),
    }
    return render_page(request, "graph/terms.html", context, fragment="term-list")


@require_POST
def embed(request: HttpRequest, slug: str, *, rebuild: bool) -> HttpResponse:
    """Request the missing embeddings now, or with ``rebuild`` new ones of all terms."""
    workspace = get_workspace(request, slug, role=EDITOR)
    run = request_embedding(workspace, rebuild=rebuild, by=by_person(request))
    return redirect("run", slug, run.pk)


def export(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    """Stream the graph as a file in grid's format."""
    workspace = get_workspace(request, slug)
    response = StreamingHttpResponse(graph_parts(workspace), content_type="application/json")
    response["Content-Disposition"] = 'attachment; filename="semantic_graph.json"'
    return response
