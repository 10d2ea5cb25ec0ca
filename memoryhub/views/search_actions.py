"""What a person does with what a search found: change it in one go, or take it along as a file."""

from __future__ import annotations

from collections import defaultdict

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from knowledge_app.services.edits import NothingChosen
from knowledge_app.views.bulk import SelectionChanged, tell
from memoryhub.flows.search import KINDS
from memoryhub.flows.search.acting import (
    DONE_TO_FACTS,
    Done,
    act,
    as_csv,
    as_json_lines,
    keep_within,
    matching_keys,
    words_left,
)
from memoryhub.flows.search.listing import count_matches
from memoryhub.lib.downloads import download
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.gate import clean_text
from memoryhub.lib.pages import number_of
from memoryhub.views.people import EDITOR
from memoryhub.views.search_noting import note_handed_out
from memoryhub.views.searching import Asked, Place, asked_of, place_of
from sessions_app.access import get_workspace, person


@require_POST
def edit_matches(request: HttpRequest, slug: str) -> HttpResponse:
    """Do one thing with the results chosen, or with all that match; each edit can be undone."""
    workspace = get_workspace(request, slug, role=EDITOR)
    place = place_of(request, slug)
    asked = asked_of(request.GET, place)
    address = asked.but(place.url("search"))
    action, _, category = request.POST.get("action", "").partition(":")
    text = clean_text(request.POST.get("text", "")).strip()
    try:
        done = act(
            workspace,
            _chosen(request, place, asked),
            action,
            category=category,
            tags=text.split(",") if action == "tag" else (),
            reason=text[:500],
            actor=person(request),
            now=timezone.now(),
        )
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect(address)
    _tell(request, done, action)
    live = next((run for run in done.runs if run.is_live), None)
    return redirect("run", slug, live.pk) if live else redirect(address)


def _tell(request: HttpRequest, done: Done, action: str) -> None:
    """Say what was done, a message for each edit with its undo, and what was left out."""
    for run in done.runs:
        tell(request, run)
    if done.facts:
        words = f"{done.facts:,} memory line{'' if done.facts == 1 else 's'} {DONE_TO_FACTS[action]}."
        messages.success(request, words)
    if left := words_left(done):
        messages.info(request, left)


@require_POST
def export_matches(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Hand out the results chosen, or all that match, as JSON Lines or as a table."""
    place = place_of(request, slug)
    asked = asked_of(request.GET, place)
    try:
        keys = _chosen(request, place, asked)
        if not keys:
            raise NothingChosen("Choose at least one row.")
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect(asked.but(place.url("search")))
    wanted = request.POST.get("format", "")
    if wanted not in ("jsonl", "csv"):
        raise Http404
    note_handed_out(request, keys)
    name = f"search-{place.workspace.slug if place.workspace else 'hub'}.{wanted}"
    return download(as_csv(keys) if wanted == "csv" else as_json_lines(keys), name)


def _chosen(request: HttpRequest, place: Place, asked: Asked) -> dict[str, list[int]]:
    """Return the keys of the rows that a form chose, by kind: its checkboxes, or all that match.

    Raises SelectionChanged where the number of those isn't the one that the page showed.
    """
    if not request.POST.get("all"):
        return keep_within(place.scope, _boxes(request.POST.getlist("row")))
    expected = number_of(request.POST.get("expected"))
    query = asked.query(timezone.now())
    tally = count_matches(place.scope, query, kinds=asked.kinds)
    if tally.is_more:
        raise SelectionChanged(f"More than {tally.count:,} rows match: narrow the search to take all of them.")
    keys = matching_keys(place.scope, query, kinds=asked.kinds)
    count = sum(map(len, keys.values()))
    if count != expected:
        raise SelectionChanged(f"{count:,} rows match now, not {expected or 0:,}: look again before you go on.")
    return keys


def _boxes(values: list[str]) -> dict[str, list[int]]:
    """Return the rows of checkboxes, each "kind:number"."""
    keys: defaultdict[str, list[int]] = defaultdict(list)
    for value in values[:1_000]:
        kind, _, number = value.partition(":")
        pk = number_of(number)
        if kind in KINDS and pk is not None:
            keys[kind].append(pk)
    return dict(keys)
