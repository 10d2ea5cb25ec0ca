from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext_lazy, ngettext

from knowledge_app.models import CachedResponse
from knowledge_app.services.rows.cached_responses import expired, figures, is_expired
from knowledge_app.services.rows.exporting import cache_file
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.knowledge.forms import CacheFilterForm
from memoryhub.knowledge.kinds import Filters, Kind, Outcome
from memoryhub.lib.bulk_selection import Action
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.extra_fields import extra_fields
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.tokens import count_tokens
from memoryhub.permissions import EDITOR, by_person, get_workspace, has_role, log_page_access
from sessions_app.models import Workspace
from sessions_app.services.access_log import seen_rows

INVALIDATE = Action("remove", gettext_lazy("Invalidate"))


def _matching(workspace: Workspace, filters: Filters) -> QuerySet[CachedResponse]:
    is_old = filters.get("state") == "expired"
    rows = expired(workspace, timezone.now()) if is_old else CachedResponse.objects.filter(workspace=workspace)
    if model := filters.get("model"):
        rows = rows.filter(model=model)
    if text := filters.get("q"):
        rows = rows.filter(any_case("preview__icontains", text) | any_case("response__icontains", text))
    return rows


def _invalidate(request: HttpRequest, workspace: Workspace, pks: list[int]) -> Outcome:
    return edit_rows(workspace, "cached", "remove", pks, by=by_person(request)), ""


def _details(row: CachedResponse, workspace: Workspace) -> dict[str, Any]:
    return {"is_expired": is_expired(row, workspace, timezone.now()), "tokens": count_tokens(row.response)}


CACHED_RESPONSES = Kind(
    table="cached",
    access="cached",
    title=gettext_lazy("Cached responses"),
    list_id="cached-list",
    list_template="knowledge/cached_responses.html",
    list_url="knowledge:cached-responses",
    row_url="knowledge:cached-response",
    edit_url="knowledge:invalidate",
    filter_form=CacheFilterForm,
    matching=_matching,
    actions=lambda _filters: (INVALIDATE,),
    edit=_invalidate,
    file=cache_file,
    file_name="semantic_cache.json",
    details=_details,
    list_context=lambda workspace, _count: {"figures": figures(workspace, timezone.now())},
    counted=lambda n: ngettext("%(count)s response", "%(count)s responses", n) % {"count": f"{n:,}"},
    notice_template="knowledge/cache_figures.html",
    search_kind="cached",
)


def cached_response(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    row = get_object_or_404(CachedResponse, workspace=workspace, pk=pk)
    log_page_access(request, workspace, "cached.read", seen_rows("cached", [pk]))
    context = {
        "workspace": workspace,
        "row": row,
        "fields": extra_fields(row),
        "may_edit": has_role(request.user, workspace, EDITOR),
        **_details(row, workspace),
    }
    return render_page(request, "knowledge/cached_response.html", context)
