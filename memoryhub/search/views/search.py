"""The search page and the fragments that it loads."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET
from django_htmx.http import push_url, replace_url

from knowledge_app.models import Fact
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import decode_cursor, encode_cursor, parse_int
from memoryhub.lib.search.hits import WeightedTerm
from memoryhub.lib.search.matching import SearchTooSlow
from memoryhub.lib.search.passages import passage
from memoryhub.lib.search.query import Query, describe
from memoryhub.lib.search.query_editing import with_filter, with_words
from memoryhub.lib.time_charts import ChartLinks
from memoryhub.permissions import get_workspace, log_page_access
from memoryhub.search import SearchResults, find
from memoryhub.search import grip as grip_search
from memoryhub.search.completion import offers
from memoryhub.search.correcting import Corrections, with_corrections
from memoryhub.search.grouping import count_messages
from memoryhub.search.listing import Cursor, ResultCounts, count_matches, facets, newest, session_titles
from memoryhub.search.months import histogram
from memoryhub.search.ranking import MOST
from memoryhub.search.saved import recent_searches, searches_for
from memoryhub.search.views.access_records import log_search_results
from memoryhub.search.views.actions import actions_of, refused_selection
from memoryhub.search.views.facets import filter_chips, session_keys, shown_facets, with_titles
from memoryhub.search.views.rows import (
    GripLine,
    ResultRow,
    searched_text,
    shown_grip,
    shown_hit,
    shown_listed,
    visible,
)
from memoryhub.search.views.search_params import Place, SearchParams, parse_search_params, search_form, search_place
from sessions_app.models import Entry, Workspace
from sessions_app.services.access_log import seen_entries

PAGE_ROWS = 20
PER_SESSION = 3  # messages of a session among the best results
AROUND = 3  # entries shown before and after one at first
MOST_AROUND = 50
AROUND_CHARS = 400
EXAMPLES = [  # query, what it does
    ("deploy friday", _("Any of these words; best matches first")),
    ('"exact words"', _("This exact phrase")),
    ("deploy -draft", _("Without this word")),
    ("deploy OR release", _("At least one of the two")),
    ("kind:memory,knowledge", _("Only these kinds; on its own, lists all of them")),
    ("role:user after:7d", _("User messages of the last seven days")),
    ("before:2026-03 has:tool", _("Tool calls from before March 2026")),
    ("What did we decide about backups?", _("You can also ask a question")),
]


@dataclass
class Results:
    """A page of results. ``ended``: all ranked results were shown, though more may match."""

    rows: list[ResultRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    added: list[tuple[str, list[tuple[str, float]]]] = field(default_factory=list)
    next_cursor: str = ""
    is_listed: bool = False
    ended: bool = False
    is_partial: bool = False
    corrected: Corrections = field(default_factory=dict)


@require_GET
def search(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Show the search page, or only its results for htmx."""
    place = search_place(request, slug)
    asked = parse_search_params(request.GET, place)
    now = timezone.now()
    context = _frame(place, asked)
    if asked.is_start:
        context |= _start(request, place)
    elif asked.mode and place.workspace:
        context |= _as_grip(place.workspace, place, asked, now)
    else:
        context |= _found(request, place, asked, now)
    if not (asked.is_part and getattr(request, "htmx", False)):  # results while typing change with every letter
        log_search_results(request, place, context)
    response = render_page(request, "search/search.html", context, fragment="search-results")
    return _at_its_address(request, response, asked, place)


def _at_its_address(request: HttpRequest, response: HttpResponse, asked: SearchParams, place: Place) -> HttpResponse:
    """Set the browser's URL: push it for a submitted search, replace it while typing."""
    if not getattr(request, "htmx", False):
        return response
    address = asked.but(place.url("search"))
    return replace_url(response, address) if asked.is_part else push_url(response, address)


def _frame(place: Place, asked: SearchParams) -> dict[str, Any]:
    names = ("search", "note-search", "saved-searches", "save-search", "complete-search", "clear-recent")
    return {
        "workspace": place.workspace,
        "asked": asked,
        "form": search_form(asked, place),
        "urls": {name.replace("-", "_"): place.url(name) for name in names},
        "may_edit": place.may_edit,
        "noted": json.dumps({"q": asked.q}),
    }


def _start(request: HttpRequest, place: Place) -> dict[str, Any]:
    url = place.url("search")
    recent = recent_searches(request.user, place.workspace)[:10]  # type: ignore[arg-type]
    saved = searches_for(request.user, place.workspace)[:20]  # type: ignore[arg-type]
    return {
        "examples": [(SearchParams(text).address(url), text, meaning) for text, meaning in EXAMPLES],
        "recent": [(SearchParams(text).address(url), text) for text in recent],
        "saved": [(place.url("open-search", one.pk), one) for one in saved],
    }


def _found(request: HttpRequest, place: Place, asked: SearchParams, now: datetime) -> dict[str, Any]:
    query = asked.query(now)
    cursor = request.GET.get("after", "")
    results = results_of(place, asked, query, cursor)
    query = with_corrections(query, results.corrected)
    used = replace(asked, q=with_words(asked.q, results.corrected)) if results.corrected else asked
    url = place.url("search")
    wants_figures = request.GET.get("facets") == "1"
    figures = _figures(place, used, now) if wants_figures else {}
    months = None if asked.is_part or cursor or not results.rows else _months(place, used, query)
    is_cut = results.is_partial or (months is not None and "is_missing" in months)
    listed_kinds = {row.kind.name for row in results.rows} | set(figures["tally"].by_kind if figures else ())
    titles = session_titles(place.scope, session_keys(query))
    return {
        "results": results,
        "read": describe(with_titles(query, titles), zone=timezone.get_current_timezone()),
        "notes": [*query.notes, *results.notes],
        "chips": filter_chips(asked, query, url, titles),
        "next_url": asked.address(url, after=results.next_cursor) if results.next_cursor else "",
        "first_url": asked.address(url) if cursor else "",
        "count_url": used.address(place.url("search-count")),
        "facets_url": used.address(place.url("search-facets")),
        "used": used.q,
        "typed_url": asked.but(url, as_typed=True) if results.corrected else "",
        "figures_url": "" if wants_figures else asked.address(url, facets="1"),
        "newest_url": asked.but(url, sort="newest"),
        "graph_url": asked.but(url, graph=not asked.graph),
        "again_url": asked.but(url),
        "whole_url": asked.but(url, whole=True) if is_cut and not asked.whole else "",
        "save_url": asked.but(place.url("save-search")),
        "most": MOST,
        "page_rows": PAGE_ROWS,
        "edit_url": used.address(place.url("edit-matches")) if place.may_edit else "",
        "export_url": used.address(place.url("export-matches")),
        "markdown_url": place.url("search-markdown"),
        "markdown_query": asked.address("", **({"after": cursor} if cursor else {})) or "?",
        "actions": actions_of(place, asked, listed_kinds),
        "cursor": cursor,
        "selection": refused_selection(request),
        "other": _other_ways(place, asked),
        "months": months,
    } | figures


def _months(place: Place, asked: SearchParams, query: Query) -> dict[str, Any] | None:
    """Return the histogram of matches by month, None if there is nothing to choose, or that it took too long."""
    try:
        found = histogram(place.scope, query, asked.q, kinds=asked.kinds, patience=asked.patience)
    except SearchTooSlow:
        return {"is_missing": True}
    if found is None:
        return None
    chart, text = found
    return {"chart": chart, "links": ChartLinks(open=asked.but(place.url("search"), q=text))}


def results_of(place: Place, asked: SearchParams, query: Query, cursor: str) -> Results:
    """Return a page of results, best first, or newest first if requested or if there are no words."""
    if asked.sort == "newest" or not query.ranked_terms:
        return _listed(place, asked, query, cursor)
    return _best(place, asked, query, cursor)


def _best(place: Place, asked: SearchParams, query: Query, cursor: str) -> Results:
    """Return the best results after a cursor, which carries the time of the first page so that ages stay the same."""
    after, now = _best_cursor(cursor) or (None, timezone.now())
    options = asked.rank_options
    if not any(one.field == "session" and not one.is_excluded for one in query.filters):
        options = replace(options, per_session=PER_SESSION)
    found = find(place.scope, query, now=now, kinds=asked.kinds, options=options, limit=PAGE_ROWS, after=after)
    rows = _with_session_links([shown_hit(hit, found) for hit in found.hits], found, place, asked, query)
    last = found.hits[-1] if found.hits and found.has_more else None
    return Results(
        rows,
        found.notes,
        list(found.added.items()),
        encode_cursor([last.score, last.kind, last.pk, now]) if last else "",
        ended=not found.has_more and found.ranked >= MOST,
        is_partial=found.is_partial,
        corrected=found.corrected,
    )


def _with_session_links(
    rows: list[ResultRow], found: SearchResults, place: Place, asked: SearchParams, query: Query
) -> list[ResultRow]:
    """Add the link to all matches of a session to the last message that is listed of it."""
    keys = {hit.pk: hit.row.session.key for hit in found.hits if hit.kind == "entry" and hit.pk in found.cut}  # type: ignore[attr-defined]
    counts = count_messages(place.scope, query, asked.kinds, {found.cut[pk] for pk in keys})
    url = place.url("search")
    return [
        replace(
            row,
            session_url=asked.but(url, q=with_filter(asked.q, "session", keys[row.pk])),
            session_count=counts.get(found.cut[row.pk], 0),
        )
        if row.is_entry and row.pk in keys
        else row
        for row in rows
    ]


def _best_cursor(cursor: str) -> tuple[tuple[float, str, int], datetime] | None:
    values = decode_cursor(cursor, 4)
    if values is None or not isinstance(values[1], str) or not isinstance(values[2], int):
        return None
    score, kind, pk, now = values
    if not isinstance(score, float | int) or not isinstance(now, datetime) or timezone.is_naive(now):
        return None
    return (-score, kind, -pk), now


def _listed(place: Place, asked: SearchParams, query: Query, cursor: str) -> Results:
    notes: list[str] = []
    after = _newest_cursor(cursor)
    found, has_more = newest(
        place.scope, query, kinds=asked.kinds, limit=PAGE_ROWS, after=after, notes=notes, patience=asked.patience
    )
    terms = [WeightedTerm(term.words, term.is_prefix) for term in query.ranked_terms]
    rows = [shown_listed(one, terms) for one in found]
    next_cursor = encode_cursor(found[-1].key) if found and has_more else ""
    return Results(rows, notes, next_cursor=next_cursor, is_listed=True, is_partial=bool(notes))


def _newest_cursor(cursor: str) -> Cursor | None:
    values = decode_cursor(cursor, 3)
    if values is None or not isinstance(values[0], datetime) or timezone.is_naive(values[0]):
        return None
    at, kind, pk = values
    return (at, kind, pk) if isinstance(kind, str) and isinstance(pk, int) else None


def _other_ways(place: Place, asked: SearchParams) -> list[tuple[str, str]]:
    """Return wider searches to suggest when nothing was found: (label, URL)."""
    url = place.url("search")
    ways = []
    if asked.match == "all":
        ways.append((gettext("Any of the words"), asked.but(url, match="any")))
    if asked.kind:
        ways.append((gettext("All kinds"), asked.but(url, kind="")))
    if place.workspace:
        ways.append((gettext("All workspaces"), asked.but(reverse("hub-search"), mode="")))
    return ways


def _as_grip(workspace: Workspace, place: Place, asked: SearchParams, now: datetime) -> dict[str, Any]:
    """Return the results of Grip's own search."""
    if asked.mode == "grip-history":
        hits = grip_search.search_history(workspace, asked.q, decay=asked.decay, now=now)
    elif asked.mode == "grip-memory":
        hits = grip_search.search_memory(workspace, asked.q, category=asked.category)
    else:
        hits = grip_search.search_knowledge(workspace, asked.q, category=asked.category)
    pks = [hit.id for hit in hits if hit.is_fact and hit.id]
    documents = dict(Fact.objects.filter(workspace=workspace, pk__in=pks).values_list("pk", "document"))
    kind = asked.mode.removeprefix("grip-")
    lines: list[GripLine] = [shown_grip(hit, workspace.slug, documents) for hit in hits]
    return {
        "grip": lines,
        "grip_hits": hits,
        "mode_kind": kind,
        "other_url": asked.but(place.url("search"), mode="", kind=kind),
    }


@require_GET
def count(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Return the number of matches (loaded after the results)."""
    place = search_place(request, slug)
    asked = parse_search_params(request.GET, place)
    query = asked.query(timezone.now())
    tally = count_matches(place.scope, query, kinds=asked.kinds, patience=asked.patience)
    return render_page(request, "search/count.html", _tally(tally))


def _tally(tally: ResultCounts) -> dict[str, Any]:
    return {"tally": tally, "counts": json.dumps(tally.by_kind)}


@require_GET
def narrowing(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Return the facets of the matches (loaded after the results)."""
    place = search_place(request, slug)
    asked = parse_search_params(request.GET, place)
    return render_page(request, "search/facets.html", _facets(place, asked, asked.query(timezone.now())))


def _facets(place: Place, asked: SearchParams, query: Query) -> dict[str, Any]:
    notes: list[str] = []
    found = facets(place.scope, query, kinds=asked.kinds, notes=notes, patience=asked.patience)
    return {"facets": shown_facets(found, asked, query, place.url("search")), "facet_notes": notes}


def _figures(place: Place, asked: SearchParams, now: datetime) -> dict[str, Any]:
    query = asked.query(now)
    tally = count_matches(place.scope, query, kinds=asked.kinds, patience=asked.patience)
    return _tally(tally) | _facets(place, asked, query)


@require_GET
def around(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return the entries around one as a fragment; without htmx, redirect to the transcript."""
    workspace = get_workspace(request, slug)
    entry: Entry = get_object_or_404(Entry, workspace=workspace, pk=pk)
    if not getattr(request, "htmx", False):
        return redirect("sessions:entry", slug, pk)
    span = max(1, min(parse_int(request.GET.get("span"), digits=3) or AROUND, MOST_AROUND))
    asked = SearchParams(request.GET.get("q", ""))
    terms = [WeightedTerm(term.words, term.is_prefix) for term in asked.query(timezone.now()).ranked_terms]
    first, last = max(0, entry.position - span), entry.position + span
    found = Entry.objects.in_conversation().filter(
        workspace=workspace,
        session=entry.session_id,
        epoch=entry.epoch,
        position__gte=first,
        position__lte=last + 1,
    )
    entries = list(found.order_by("position"))
    log_page_access(request, workspace, "entries.read", seen_entries(one for one in entries if one.position <= last))
    has_more = span < MOST_AROUND and (first > 0 or any(one.position > last for one in entries))
    url = reverse("search-around", args=[slug, pk])
    context = {
        "workspace": workspace,
        "entry": entry,
        "entries": [(one, _excerpt(one, terms)) for one in entries if one.position <= last],
        "more_url": SearchParams(asked.q).address(url, span=str(span + 5)) if has_more else "",
    }
    return render_page(request, "search/around.html", context)


def _excerpt(entry: Entry, terms: list[WeightedTerm]) -> dict[str, Any]:
    found = passage(searched_text("entry", entry), terms, length=AROUND_CHARS)
    return {"pieces": visible(found.pieces), "has_before": found.has_before, "has_after": found.has_after}


@require_GET
def complete(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Return completions for the query being typed."""
    place = search_place(request, slug)
    text = request.GET.get("q", "")
    cursor = parse_int(request.GET.get("cursor"), digits=4)
    found = offers(
        place.scope,
        text,
        len(text) if cursor is None else cursor,
        now=timezone.now(),
        zone=timezone.get_current_timezone(),
    )
    return render_page(request, "search/offers.html", {"offers": found})
