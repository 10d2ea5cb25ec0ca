from __future__ import annotations

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from knowledge_app.models import CachedResponse
from knowledge_app.services.rows.cached_responses import expired, figures, is_expired
from knowledge_app.services.rows.edits import edit_rows
from knowledge_app.services.rows.exporting import cache_file
from memoryhub.access import by_person, get_workspace, has_role, log_page_access
from memoryhub.bulk_edits import answer_edit, list_address
from memoryhub.knowledge.forms import CacheFilterForm
from memoryhub.lib.bulk_selection import Action, selected_keys
from memoryhub.lib.downloads import download
from memoryhub.lib.extra_fields import extra_fields
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pagination import keyset_page
from memoryhub.lib.tokens import count_tokens
from sessions_app.models import Membership, Run, Workspace
from sessions_app.services.access_log import seen_rows

EDITOR = Membership.Role.EDITOR
SHOWN_MODELS = 100
INVALIDATE = Action("remove", gettext_lazy("Invalidate"))


def cached_responses(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    form = _form(workspace, request)
    rows = _fitting(workspace, request)
    page = keyset_page(rows, order=("-id",), params=request.GET)
    log_page_access(request, workspace, "cached.read", seen_rows("cached", [row.pk for row in page.rows]))
    now = timezone.now()
    context = {
        "workspace": workspace,
        "form": form,
        "is_filtered": any(form.cleaned_data.values()) if form.is_valid() else False,
        "page": page,
        "rows": [(row, is_expired(row, workspace, now), count_tokens(row.response)) for row in page.rows],
        "count": rows.count(),
        "figures": figures(workspace, now),
        "actions": (INVALIDATE,),
        "may_edit": has_role(request.user, workspace, EDITOR),
    }
    return render_page(request, "knowledge/cached_responses.html", context, fragment="cached-list")


def _form(workspace: Workspace, request: HttpRequest) -> CacheFilterForm:
    names = CachedResponse.objects.filter(workspace=workspace).order_by("model").values_list("model", flat=True)
    return CacheFilterForm(request.GET, models=[name for name in names.distinct()[:SHOWN_MODELS] if name])


def _fitting(workspace: Workspace, request: HttpRequest) -> QuerySet[CachedResponse]:
    """Return the responses that a page's filters leave: its rows, and what "all that fit" means."""
    form = _form(workspace, request)
    wishes = form.cleaned_data if form.is_valid() else {}
    is_old = wishes.get("state") == "expired"
    rows = expired(workspace, timezone.now()) if is_old else CachedResponse.objects.filter(workspace=workspace)
    if model := wishes.get("model"):
        rows = rows.filter(model=model)
    if text := wishes.get("q"):
        rows = rows.filter(Q(preview__icontains=text) | Q(response__icontains=text))
    return rows


@require_POST
def invalidate(request: HttpRequest, slug: str) -> HttpResponse:
    """Take responses out of the cache: those chosen, or all that fit the filters."""
    workspace = get_workspace(request, slug, role=EDITOR)
    rows = _fitting(workspace, request)

    def edit() -> tuple[Run, str]:
        pks = selected_keys(request, rows)
        return edit_rows(workspace, "cached", "remove", pks, by=by_person(request)), ""

    return answer_edit(request, slug, list_address(request, slug, "knowledge:cached-responses"), edit)


def cached_response(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    row = get_object_or_404(CachedResponse, workspace=workspace, pk=pk)
    log_page_access(request, workspace, "cached.read", seen_rows("cached", [row.pk]))
    context = {
        "workspace": workspace,
        "row": row,
        "tokens": count_tokens(row.response),
        "is_expired": is_expired(row, workspace, timezone.now()),
        "fields": extra_fields(row),
        "may_edit": has_role(request.user, workspace, EDITOR),
    }
    return render_page(request, "knowledge/cached_response.html", context)


@require_GET
def download_cache(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    pks = CachedResponse.objects.filter(workspace=workspace).values_list("pk", flat=True)
    log_page_access(request, workspace, "cached.exported", seen_rows("cached", pks))
    return download(cache_file(workspace), "semantic_cache.json")
