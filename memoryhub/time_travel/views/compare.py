"""The comparison page: changes to a workspace between two moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET

from memoryhub.lib.content_check.hidden_content import show_invisible
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page
from memoryhub.lib.text.diff import DiffLine
from memoryhub.permissions import get_workspace, log_page_access
from memoryhub.time_travel.gaps import gaps_of
from memoryhub.time_travel.parsing import InvalidMoment, known_since, url_time
from memoryhub.time_travel.rows import CURATED, changed_between, history_of
from memoryhub.time_travel.sessions import touched_sessions
from memoryhub.time_travel.snapshots import (
    changed_documents,
    document_changes,
    new_history,
    row_changes,
    session_changes,
    withdrawn_history,
)
from memoryhub.time_travel.views.snapshot import (
    LOGGED,
    PAGES,
    gaps_for,
    local_text,
    part_of,
    requested_moment,
    tabs_of,
)
from sessions_app.models import Workspace
from sessions_app.services.access_log import seen_revision, seen_rows

PAGE_ROWS = 20
ROW_CHARS = 2_500  # of a row's diff
DOCUMENT_CHARS = 20_000  # of all documents' diffs together
LINE_CHARS = 2_000
SHOWN_WITHDRAWN = 50
BECAME = {
    "added": (gettext_lazy("added"), "good"),
    "changed": (gettext_lazy("changed"), "accent"),
    "withdrawn": (gettext_lazy("withdrawn"), "warn"),
    "returned": (gettext_lazy("restored"), "good"),
    "removed": (gettext_lazy("removed"), "bad"),
    "same": (gettext_lazy("same text"), ""),
}


@dataclass(frozen=True)
class Between:
    """Two moments, the earlier first."""

    first: datetime
    second: datetime


@require_GET
def compare_past(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what changed after ``from``, up to ``to`` (default: now)."""
    workspace = get_workspace(request, slug)
    now = timezone.now()
    try:
        first, second = requested_moment(request.GET, "from", now), requested_moment(request.GET, "to", now)
    except InvalidMoment as error:
        return _page(request, workspace, {"error": error.message}, status=422)
    if first is None:
        return _page(request, workspace, {"now_local": local_text(now)})
    between = Between(*sorted((first, second or now)))
    part = part_of(request.GET)
    query = {"from": url_time(between.first), "to": url_time(between.second)}
    if {name: request.GET.get(name) for name in query} != query:
        return redirect(f"{reverse('compare-past', args=[slug])}?{urlencode(query | {'part': part})}")
    context = {
        "first": between.first,
        "second": between.second,
        "first_local": local_text(between.first),
        "second_local": local_text(between.second),
        "now_local": local_text(now),
        "query": query,
        "since": known_since(workspace),
        "part": part,
        "tabs": tabs_of(
            f"{reverse('compare-past', args=[slug])}?{urlencode(query)}", _counts(workspace, between), part
        ),
        "gaps": gaps_for(gaps_of(workspace, between.first), part),
        **VIEWS[part](request, workspace, between),
    }
    return _page(request, workspace, context)


def _page(request: HttpRequest, workspace: Workspace, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    full = {"workspace": workspace} | context
    return render_page(request, "time_travel/compare.html", full, status=status)


def _counts(workspace: Workspace, between: Between) -> dict[str, int]:
    moments = (between.first, between.second)
    counts = {part: changed_between(model, workspace, *moments).count() for part, model in CURATED.items()}
    history = new_history(workspace, *moments).count() + withdrawn_history(workspace, *moments).count()
    return counts | {
        "memory": len(changed_documents(workspace, *moments)),
        "sessions": touched_sessions(workspace, *moments).count(),
        "history": history,
    }


def _memory(request: HttpRequest, workspace: Workspace, between: Between) -> dict[str, Any]:
    changes = document_changes(workspace, between.first, between.second)
    read = [seen_revision(side.pk, side.revision) for one in changes for side in (one.before, one.after) if side]
    log_page_access(request, workspace, "document.read", read)
    room = DOCUMENT_CHARS // max(1, len(changes))
    return {"documents": [replace(one, diff=cut_diff(one.diff, room)) for one in changes]}


def cut_diff(diff: Sequence[DiffLine], room: int) -> list[DiffLine]:
    """Cut a diff to ``room`` characters; the last line says how many lines are left out."""
    shown: list[DiffLine] = []
    for place, line in enumerate(diff):
        room -= min(len(line.text), LINE_CHARS) + 40  # the row's own marks
        if room < 0:
            left = len(diff) - place
            words = ngettext("%(count)s more line", "%(count)s more lines", left) % {"count": left}
            return [*shown, DiffLine("skip", words)]
        shown.append(_shown_line(line))
    return shown


def _shown_line(line: DiffLine) -> DiffLine:
    text = line.text if len(line.text) <= LINE_CHARS else f"{line.text[:LINE_CHARS]}…"
    parts = tuple((changed, show_invisible(piece)) for changed, piece in line.parts)
    return replace(line, text=show_invisible(text), parts=parts)


def _curated(part: str) -> Callable[[HttpRequest, Workspace, Between], dict[str, Any]]:
    def view(request: HttpRequest, workspace: Workspace, between: Between) -> dict[str, Any]:
        moments = (between.first, between.second)
        touched = changed_between(CURATED[part], workspace, *moments)
        page = keyset_page(touched, order=("id",), params=request.GET, size=PAGE_ROWS)
        changes = row_changes(workspace, part, [state.id for state in page.rows], *moments)
        open_rows = [one.pk for one in changes if not getattr(one.shown, "is_secret", False)]
        action, table = LOGGED[part]
        log_page_access(request, workspace, action, seen_rows(table, open_rows))
        there = set(CURATED[part].objects.filter(pk__in=[one.pk for one in changes]).values_list("pk", flat=True))
        rows = [
            {
                "change": replace(one, diff=cut_diff(one.diff, ROW_CHARS)),
                "label": BECAME[one.became][0],
                "tone": BECAME[one.became][1],
                "url": reverse(PAGES[part], args=[workspace.slug, one.pk]) if one.pk in there else "",
            }
            for one in changes
        ]
        return {"page": page, "rows": rows}

    return view


def _sessions(request: HttpRequest, workspace: Workspace, between: Between) -> dict[str, Any]:
    moments = (between.first, between.second)
    page = keyset_page(touched_sessions(workspace, *moments), order=("key",), params=request.GET, size=PAGE_ROWS)
    return {"page": page, "sessions": session_changes(workspace, page.rows, *moments)}


def _history(request: HttpRequest, workspace: Workspace, between: Between) -> dict[str, Any]:
    moments = (between.first, between.second)
    page = keyset_page(new_history(workspace, *moments), order=("position",), params=request.GET, size=PAGE_ROWS)
    gone = list(withdrawn_history(workspace, *moments).order_by("-position")[:SHOWN_WITHDRAWN])
    log_page_access(request, workspace, "history.read", seen_rows("history", [row.pk for row in [*page.rows, *gone]]))
    return {
        "page": page,
        "came": history_of(workspace, page.rows, between.second),
        "went": history_of(workspace, gone, between.second),
    }


VIEWS: dict[str, Callable[[HttpRequest, Workspace, Between], dict[str, Any]]] = {
    "memory": _memory,
    "knowledge": _curated("knowledge"),
    "observations": _curated("observations"),
    "key-values": _curated("key-values"),
    "sessions": _sessions,
    "history": _history,
}
