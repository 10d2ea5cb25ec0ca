from __future__ import annotations

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone

from knowledge_app.models import CachedResponse
from knowledge_app.views.extra import further_fields
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pages import keyset_page
from memoryhub.lib.tokens import count_tokens
from sessions_app.access import get_workspace
from sessions_app.models import Workspace


def cached_responses(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    rows = CachedResponse.objects.filter(workspace=workspace)
    page = keyset_page(rows, order=("-id",), params=request.GET)
    context = {
        "workspace": workspace,
        "page": page,
        "rows": [(row, is_expired(row, workspace), count_tokens(row.response)) for row in page.rows],
        "count": rows.count(),
    }
    return render_page(request, "knowledge_app/cached_responses.html", context, fragment="cached-list")


def cached_response(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    row = get_object_or_404(CachedResponse, workspace=workspace, pk=pk)
    context = {
        "workspace": workspace,
        "row": row,
        "tokens": count_tokens(row.response),
        "is_expired": is_expired(row, workspace),
        "fields": further_fields(row),
    }
    return render_page(request, "knowledge_app/cached_response.html", context)


def is_expired(row: CachedResponse, workspace: Workspace) -> bool:
    """Tell whether a response is as old as the workspace lets one be, or older: Grip's rule."""
    lifetime = timedelta(seconds=workspace.cache_ttl_seconds)
    return row.created_at is None or timezone.now() - row.created_at >= lifetime
