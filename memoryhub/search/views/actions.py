"""Bulk edits and export of search results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_POST

from knowledge_app.models import KnowledgeEntry, Observation
from memoryhub.edit_responses import REVIEW, VERIFY, WITHDRAW, add_edit_message, move_action
from memoryhub.lib.bulk_selection import Action, Limit, action_value, check_count, submitted_rows
from memoryhub.lib.date_ranges import parse_day
from memoryhub.lib.errors import Conflict, Invalid, MemoryHubError
from memoryhub.lib.http.downloads import download
from memoryhub.lib.http.pagination import parse_int
from memoryhub.permissions import EDITOR, by_person, get_workspace
from memoryhub.search import KINDS
from memoryhub.search.actions import (
    CATEGORIES,
    KINDS_BY_ACTION,
    NOT_APPLICABLE,
    ActionResult,
    act,
    as_csv,
    as_json_lines,
    describe_skipped,
    join_phrases,
    keep_within,
    matching_keys,
)
from memoryhub.search.listing import count_matches
from memoryhub.search.views.access_records import log_export
from memoryhub.search.views.search_params import Place, SearchParams, parse_search_params, search_place
from sessions_app.models import Workspace

EDITS = (
    Action("pin", gettext_lazy("Pin")),
    Action("unpin", gettext_lazy("Unpin")),
    VERIFY,
    REVIEW,
    Action("tag", gettext_lazy("Add tags"), asks="text", label=gettext_lazy("Tags, separated by commas")),
    Action("untag", gettext_lazy("Remove tags"), asks="text", label=gettext_lazy("Tags, separated by commas")),
    move_action([*KnowledgeEntry.Category.choices, *Observation.Category.choices]),
    WITHDRAW,
    Action("archive", gettext_lazy("Archive")),
)
SESSION_KEY = "search-selection"


@dataclass(frozen=True)
class Selection:
    """The selection of a refused action: the checkboxes of its page, those of other pages, or all matches."""

    rows: Sequence[str] = ()
    kept: str = ""
    is_all: bool = False


@require_POST
def edit_matches(request: HttpRequest, slug: str) -> HttpResponse:
    """Apply an action to the selected results or to all matches; each edit can be undone."""
    workspace = get_workspace(request, slug, role=EDITOR)
    place = search_place(request, slug)
    asked = parse_search_params(request.GET, place)
    keys: dict[str, list[int]] = {}
    try:
        keys = _chosen(request, place, asked)
        done = apply_action(request, workspace, keys)
    except MemoryHubError as error:
        return _refuse(request, place, asked, describe_refusal(error, keys))
    show_messages(request, done)
    live = next((run for run in done.runs if run.is_live), None)
    return redirect("run", slug, live.pk) if live else redirect(asked.but(place.url("search")))


def apply_action(request: HttpRequest, workspace: Workspace, keys: Mapping[str, Sequence[int]]) -> ActionResult:
    """Apply a form's action to rows of a workspace, by kind. Raises as ``act``."""
    action, _colon, category = request.POST.get("action", "").partition(":")
    text = action_value(request, action)
    return act(
        workspace,
        keys,
        action,
        category=category,
        tags=text.split(",") if action in ("tag", "untag") else (),
        reason=text,
        day=parse_day(text) if action == "review" else "",
        by=by_person(request),
    )


def describe_refusal(error: MemoryHubError, keys: Mapping[str, Sequence[int]]) -> str:
    """Return the message for an action that couldn't be applied to rows, with the actions that can."""
    possible = _possible_actions(keys) if error.code == NOT_APPLICABLE else ""
    return f"{error.message} {possible}".strip()


def _refuse(request: HttpRequest, place: Place, asked: SearchParams, message: str) -> HttpResponse:
    """Redirect to the page of results that sent the form, with an error message and the same selection."""
    messages.error(request, message)
    is_all = bool(request.POST.get("all"))
    request.session[SESSION_KEY] = [request.POST.getlist("row"), request.POST.get("kept", ""), is_all]
    page = {"after": request.POST.get("after", ""), "facets": "1" if is_all else ""}
    return redirect(asked.address(place.url("search"), **{name: value for name, value in page.items() if value}))


def refused_selection(request: HttpRequest) -> Selection | None:
    """Return the selection of the action refused just before, once."""
    found = request.session.pop(SESSION_KEY, None)
    return Selection(*found) if found else None


def _possible_actions(keys: Mapping[str, Sequence[int]]) -> str:
    """Return a sentence that lists the actions which apply to selected rows, with how many of them."""
    total = sum(map(len, keys.values()))
    names = []
    for action in EDITS:
        count = sum(len(pks) for kind, pks in keys.items() if kind in KINDS_BY_ACTION[action.name])
        part = {"action": action.words, "count": f"{count:,}", "total": f"{total:,}"}
        if count == total:
            names.append(str(action.words))
        elif count:
            names.append(gettext("%(action)s (%(count)s of %(total)s)") % part)
    names.append(gettext("Export"))
    return gettext("Available for this selection: %(actions)s.") % {"actions": join_phrases(names)}


def actions_of(place: Place, asked: SearchParams, listed_kinds: Collection[str]) -> list[Action]:
    """Return the actions on results: export for viewers, edits as well for editors.

    Edits that apply to none of ``listed_kinds`` are disabled.
    """
    export = export_action(asked.address(place.url("export-matches")))
    return [*edit_actions(listed_kinds), export] if place.may_edit else [export]


def edit_actions(listed_kinds: Collection[str]) -> list[Action]:
    """Return the edits of a list of several kinds; those that apply to none of ``listed_kinds`` are disabled."""
    return [_limited(action, listed_kinds) for action in EDITS]


def export_action(url: str) -> Action:
    files = [("jsonl", "JSON Lines"), ("csv", "CSV")]
    return Action("export", gettext_lazy("Export"), choices=files, url=url, is_file=True)


def _limited(action: Action, listed_kinds: Collection[str]) -> Action:
    """Return an action with the kinds that it and its choices apply to."""
    choices = {value: _limit([kind]) for kind, categories in CATEGORIES.items() for value in categories.values}
    limits = choices if action.name == "move" else {}
    limit = _limit(KINDS_BY_ACTION[action.name])
    return replace(action, limit=limit, choice_limits=limits, listed_kinds=listed_kinds)


def _limit(kinds: Sequence[str]) -> Limit:
    names = join_phrases([str(KINDS[kind].many) for kind in kinds])
    return Limit(kinds, gettext("Only for %(kinds)s") % {"kinds": names})


def show_messages(request: HttpRequest, done: ActionResult) -> None:
    """Show a message with Undo for each edit, and what was skipped."""
    for run in done.runs:
        add_edit_message(request, run)
    if left := describe_skipped(done):
        messages.info(request, left)


@require_POST
def export_matches(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Download the selected results or all matches as JSON Lines or CSV."""
    place = search_place(request, slug)
    asked = parse_search_params(request.GET, place)
    try:
        keys = _chosen(request, place, asked)
        if not keys:
            raise Invalid(gettext("Select at least one row."), code="nothing_chosen")
    except MemoryHubError as error:
        return _refuse(request, place, asked, error.message)
    return send_export(request, keys, f"search-{place.workspace.slug if place.workspace else 'hub'}")


def send_export(request: HttpRequest, keys: Mapping[str, Sequence[int]], name: str) -> HttpResponse:
    """Return rows as JSON Lines or CSV, as the form asks for, and log the export."""
    wanted = request.POST.get("action", "").partition(":")[2] or request.POST.get("format", "")
    if wanted not in ("jsonl", "csv"):
        raise Http404
    log_export(request, keys)
    return download(as_csv(keys) if wanted == "csv" else as_json_lines(keys), f"{name}.{wanted}")


def _chosen(request: HttpRequest, place: Place, asked: SearchParams) -> dict[str, list[int]]:
    """Return the selected rows by kind: the checked ones, or all matches.

    Raises Conflict if the number of matches differs from the one on the page.
    """
    if not request.POST.get("all"):
        return keep_within(place.scope, parse_boxes(submitted_rows(request)))
    expected = parse_int(request.POST.get("expected"))
    query = asked.query(timezone.now())
    tally = count_matches(place.scope, query, kinds=asked.kinds)
    if tally.is_more:
        words = gettext("More than %(count)s rows match. Narrow the search to select all of them.")
        raise Conflict(words % {"count": f"{tally.count:,}"}, code="selection_changed")
    if tally.is_partial:
        words = gettext("Counting the matches took too long. Narrow the search to select all of them.")
        raise Conflict(words, code="selection_changed")
    keys = matching_keys(place.scope, query, kinds=asked.kinds)
    check_count(sum(map(len, keys.values())), expected)
    return keys


def parse_boxes(values: list[str]) -> dict[str, list[int]]:
    """Parse checkbox values ("kind:pk") into keys by kind."""
    keys: defaultdict[str, list[int]] = defaultdict(list)
    for value in values:
        kind, _, number = value.partition(":")
        pk = parse_int(number)
        if kind in KINDS and pk is not None:
            keys[kind].append(pk)
    return dict(keys)
