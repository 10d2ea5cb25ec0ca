from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from knowledge_app.models import Observation
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_int
from memoryhub.permissions import get_workspace, log_page_access
from memoryhub.search import KINDS, Scope
from memoryhub.search import recall as flow
from memoryhub.search.shown_rows import seen_results


def recall(request: HttpRequest, slug: str) -> HttpResponse:
    """Preview what recall returns to an agent for a question, with scores and expansions."""
    workspace = get_workspace(request, slug)
    query = request.GET.get("q", "")
    limit = parse_int(request.GET.get("limit"), digits=3) or flow.LIMIT
    found = flow.recall(Scope((workspace.pk,), for_agent=True), query, now=timezone.now(), limit=limit)
    log_page_access(request, workspace, "observations.recalled", seen_results(found.rows))
    context = {
        "workspace": workspace,
        "q": query[:512],
        "limit": limit,
        "found": found,
        "columns": [(category, found.found[category.value]) for category in Observation.Category],
        "memories": [(KINDS[one.kind], one.text) for one in found.memories],
        "hits": sum(len(rows) for rows in found.found.values()) + len(found.memories),
    }
    return render_page(request, "search/recall.html", context, fragment="recalled")
