"""Saved and recent searches."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.validation import clean_text
from memoryhub.models import SavedSearch
from memoryhub.search.listing import ResultCounts
from memoryhub.search.saved import clear_recent, count_new, record_search, record_visit, save_search, searches_for
from memoryhub.search.views.search_params import Place, SearchParams, parse_search_params, search_place

COUNTED = 20  # saved searches whose new matches are counted


@require_GET
def saved_searches(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """List the user's saved searches with counts of new matches, and shared ones."""
    place, user = search_place(request, slug), _user(request)
    rows = list(searches_for(user, place.workspace))
    own = [one for one in rows if one.user_id == user.pk]
    now = timezone.now()
    new = {one.pk: count_new(one, place.scope, now) for one in own[:COUNTED] if not one.params.get("mode")}
    context = {
        "workspace": place.workspace,
        "search_url": place.url("search"),
        "saved_url": place.url("saved-searches"),
        "own": [_row(place, one, new.get(one.pk)) for one in own],
        "shared": [_row(place, one, None) for one in rows if one.user_id != user.pk],
    }
    return render_page(request, "search/saved.html", context, fragment="saved-searches")


def _row(place: Place, saved: SavedSearch, new: ResultCounts | None) -> dict[str, Any]:
    return {
        "saved": saved,
        "open_url": place.url("open-search", saved.pk),
        "delete_url": place.url("delete-search", saved.pk),
        "new": new,
    }


@require_POST
def save(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Save the search in the query string under a name."""
    place = search_place(request, slug)
    asked = parse_search_params(request.GET, place)
    params = {name: value for name, value in asked.params.items() if name not in ("q", "part")}
    try:
        saved = save_search(
            _user(request),
            place.workspace,
            name=clean_text(request.POST.get("name", "")),
            query=clean_text(asked.q),
            params=params,
            is_shared=bool(request.POST.get("is_shared")),
            now=timezone.now(),
        )
        messages.success(request, gettext("Saved as “%(name)s”.") % {"name": saved.name})
    except MemoryHubError as error:
        messages.error(request, error.message)
    return redirect(asked.but(place.url("search")))


@require_GET
def open_saved(request: HttpRequest, pk: int, slug: str | None = None) -> HttpResponse:
    """Open a saved search; for its owner, all current matches count as seen."""
    place = search_place(request, slug)
    saved = get_object_or_404(searches_for(_user(request), place.workspace), pk=pk)
    if saved.user_id == request.user.pk:
        record_visit(saved, timezone.now())
    params = QueryDict(mutable=True)
    params.update({name: str(value) for name, value in saved.params.items()} | {"q": saved.query})
    return redirect(parse_search_params(params, place).address(place.url("search")))


@require_POST
def delete(request: HttpRequest, pk: int, slug: str | None = None) -> HttpResponse:
    """Delete one of the user's saved searches."""
    place = search_place(request, slug)
    saved = get_object_or_404(_own(request, place), pk=pk)
    saved.delete()
    messages.success(request, gettext("“%(name)s” is deleted.") % {"name": saved.name})
    return redirect(place.url("saved-searches"))


def _own(request: HttpRequest, place: Place) -> QuerySet[SavedSearch]:
    return SavedSearch.objects.filter(user=_user(request), workspace=place.workspace)


@require_POST
def note(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Add a search to the user's recent searches."""
    place = search_place(request, slug)
    asked = SearchParams(clean_text(request.POST.get("q", "")))
    record_search(_user(request), place.workspace, asked.q, timezone.now())
    return HttpResponse(status=204)


@require_POST
def clear(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Clear the user's recent searches."""
    place = search_place(request, slug)
    clear_recent(_user(request), place.workspace)
    messages.success(request, gettext("Your recent searches are cleared."))
    return redirect(place.url("search"))


def _user(request: HttpRequest) -> User:
    return request.user  # type: ignore[return-value]  # nobody gets here without logging in
