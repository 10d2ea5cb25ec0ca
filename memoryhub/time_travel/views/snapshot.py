"""The time travel page: a workspace at a moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from knowledge_app.models import MemoryRevision
from knowledge_app.services.rows import restoring as service
from memoryhub.edit_responses import answer_edit, list_address
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page, parse_int
from memoryhub.lib.masked_text import masked
from memoryhub.permissions import by_person, get_workspace, has_role, log_page_access
from memoryhub.time_travel.gaps import Gap, gaps_of
from memoryhub.time_travel.parsing import InvalidMoment, before_run, known_since, parse_moment, url_time
from memoryhub.time_travel.reconstructed import reconstructed_documents
from memoryhub.time_travel.restorable import ChangeSince, changes_since
from memoryhub.time_travel.rows import (
    CURATED,
    READERS,
    DocumentAt,
    FactAt,
    documents_at,
    facts_at,
    history_entries_at,
    history_of,
    states_at,
)
from memoryhub.time_travel.sessions import known_sessions, sessions_at
from memoryhub.time_travel.timeline import marks_of, suggested_moments, timeline
from sessions_app.models import Membership, Run, Workspace
from sessions_app.services.access_log import Seen, seen_entries, seen_revision, seen_rows

EDITOR = Membership.Role.EDITOR
PAGE_ROWS = 25
SHOWN_CHARS = 2_000  # of a row
DOCUMENT_CHARS = 20_000  # of all documents together
SHOWN_FACTS = 100  # of a document
PARTS = {
    "memory": gettext_lazy("Memory"),
    "knowledge": gettext_lazy("Knowledge"),
    "observations": gettext_lazy("Observations"),
    "key-values": gettext_lazy("Key-values"),
    "sessions": gettext_lazy("Conversations"),
    "history": gettext_lazy("History"),
}
LOGGED = {  # the access log's action and table of each part
    "knowledge": ("knowledge.read", "knowledge"),
    "observations": ("observations.read", "observations"),
    "key-values": ("key_value.read", "key_values"),
    "history": ("history.read", "history"),
}
PAGES = {
    "knowledge": "knowledge:knowledge-entry",
    "observations": "knowledge:observation",
    "key-values": "knowledge:key-value",
}


@dataclass(frozen=True)
class Tab:
    key: str
    label: str
    count: int
    url: str
    is_current: bool


@dataclass(frozen=True)
class ShownDocument:
    """A document at a moment, cut to fit the page, with its facts."""

    document: DocumentAt
    text: str
    is_cut: bool
    facts: Sequence[FactAt]
    more_facts: int


@dataclass(frozen=True)
class ShownRow:
    """A row at a moment; ``url`` is its present page ("" if deleted), ``since`` how it changed."""

    row: Any
    text: str
    is_cut: bool
    url: str
    since: ChangeSince | None = None


@require_GET
def past(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one part of a workspace at the moment ``at``."""
    workspace = get_workspace(request, slug)
    now = timezone.now()
    if "before_run" in request.GET:
        pk = parse_int(request.GET["before_run"]) or 0
        run = get_object_or_404(Run.objects.only("created_at", "started_at"), workspace=workspace, pk=pk)
        return redirect(_address("past", slug, at=url_time(before_run(run))))
    try:
        at = requested_moment(request.GET, "at", now)
    except InvalidMoment as error:
        return render_page(request, "time_travel/past.html", _header(workspace, None, now, error=error), status=422)
    if at is None:
        return render_page(request, "time_travel/past.html", _header(workspace, None, now))
    part = part_of(request.GET)
    if request.GET["at"] != url_time(at):
        return redirect(_address("past", slug, at=url_time(at), part=part))
    context = _header(workspace, at, now) | {
        "part": part,
        "tabs": tabs_of(_address("past", slug, at=url_time(at)), _counts(workspace, at), part),
        "gaps": gaps_for(gaps_of(workspace, at), part),
        "may_edit": has_role(request.user, workspace, EDITOR),
        **PART_VIEWS[part](request, workspace, at),
    }
    return render_page(request, "time_travel/past.html", context)


@require_POST
def restore_row(request: HttpRequest, slug: str, part: str, pk: int) -> HttpResponse:
    """Restore a row to the state shown in a snapshot."""
    workspace = get_workspace(request, slug, role=EDITOR)
    if part not in CURATED:
        raise Http404
    row = get_object_or_404(CURATED[part], workspace=workspace, pk=pk)
    state, known = (parse_int(request.POST.get(name)) or 0 for name in ("state", "known"))
    return answer_edit(
        request,
        slug,
        list_address(request, slug, "past"),
        lambda: (service.restore_row(row, state, known=known, by=by_person(request)), ""),
    )


def requested_moment(params: QueryDict, name: str, now: datetime) -> datetime | None:
    """Return the moment named by a query parameter, or None. Raises InvalidMoment."""
    text = params.get(name, "").strip()
    return parse_moment(text, zone=timezone.get_current_timezone(), now=now) if text else None


def part_of(params: QueryDict) -> str:
    """Return the requested part, memory documents by default."""
    part = params.get("part", "")
    return part if part in PARTS else "memory"


def tabs_of(address: str, counts: dict[str, int], part: str) -> list[Tab]:
    """Return the parts as tabs; ``address`` already has a query string."""
    return [
        Tab(key, str(label), counts[key], f"{address}&{urlencode({'part': key})}", key == part)
        for key, label in PARTS.items()
    ]


def gaps_for(gaps: Sequence[Gap], part: str) -> list[str]:
    """Return the gaps of a part as sentences."""
    return [gap.text for gap in gaps if gap.part in ("", part)]


def local_text(at: datetime | None) -> str:
    """Format a moment for a datetime-local input, in the user's time zone."""
    return timezone.make_naive(at).isoformat(timespec="seconds") if at else ""


def _address(name: str, slug: str, **query: str) -> str:
    return f"{reverse(name, args=[slug])}?{urlencode(query)}"


def _header(workspace: Workspace, at: datetime | None, now: datetime, *, error: InvalidMoment | None = None) -> Any:
    """Return the context of the page's header: time field, suggested moments, timeline."""
    marks = marks_of(workspace)
    since = known_since(workspace)
    choices = suggested_moments(marks, since, now)
    slug = workspace.slug
    return {
        "workspace": workspace,
        "at": at,
        "at_address": url_time(at) if at else "",
        "at_local": local_text(at),
        "now_local": local_text(now),
        "error": error.message if error else "",
        "since": since,
        "is_before": at is not None and at < since,
        "quick": [(one.label, _address("past", slug, at=url_time(one.at))) for one in choices],
        "marks": [(mark, _address("past", slug, at=url_time(mark.before))) for mark in marks],
        "line": timeline(marks, [(gettext("The moment shown"), at)] if at else [], now) if marks else None,
    }


def _counts(workspace: Workspace, at: datetime) -> dict[str, int]:
    written = MemoryRevision.objects.filter(document__workspace=workspace, created_at__lte=at)
    counts = {part: states_at(model, workspace, at).count() for part, model in CURATED.items()}
    return counts | {
        "memory": written.order_by().values("document").distinct().count(),
        "sessions": known_sessions(workspace, at).count(),
        "history": history_entries_at(workspace, at).count(),
    }


def _memory(request: HttpRequest, workspace: Workspace, at: datetime) -> dict[str, Any]:
    documents = documents_at(workspace, at)
    facts = facts_at(workspace, documents, at)
    log_page_access(request, workspace, "document.read", [seen_revision(one.pk, one.revision) for one in documents])
    earlier = reconstructed_documents(workspace, at)
    log_page_access(request, workspace, "entries.read", seen_entries([one.entry for one in earlier]))
    room = DOCUMENT_CHARS // max(1, len(documents) + len(earlier))
    return {
        "documents": [_document(one, facts, room) for one in documents],
        "reconstructed": [(one, masked(one.text)[:room]) for one in earlier],
    }


def _document(document: DocumentAt, facts: Sequence[FactAt], room: int) -> ShownDocument:
    own = [replace(fact, text=masked(fact.text)) for fact in facts if fact.document == document.pk]
    text = masked(document.content)
    return ShownDocument(document, text[:room], len(text) > room, own[:SHOWN_FACTS], max(0, len(own) - SHOWN_FACTS))


def _curated(part: str) -> Callable[[HttpRequest, Workspace, datetime], dict[str, Any]]:
    def view(request: HttpRequest, workspace: Workspace, at: datetime) -> dict[str, Any]:
        page = keyset_page(states_at(CURATED[part], workspace, at), order=("id",), params=request.GET, size=PAGE_ROWS)
        found = READERS[part](page.rows)
        _log_access(request, workspace, part, [row.pk for row in found if not getattr(row, "is_secret", False)])
        since = changes_since(part, workspace, page.rows, timezone.now())
        urls = {pk: reverse(PAGES[part], args=[workspace.slug, pk]) for pk in since}
        return {"page": page, "rows": [_row(row, urls.get(row.pk, ""), since.get(row.pk)) for row in found]}

    return view


def _history(request: HttpRequest, workspace: Workspace, at: datetime) -> dict[str, Any]:
    entries = history_entries_at(workspace, at).defer("extra")
    page = keyset_page(entries, order=("-position",), params=request.GET, size=PAGE_ROWS)
    found = history_of(workspace, page.rows, at)
    _log_access(request, workspace, "history", [row.pk for row in found])
    url = reverse("documents:history", args=[workspace.slug])
    return {"page": page, "rows": [_row(row, f"{url}#history-{row.pk}") for row in found]}


def _row(row: Any, url: str, since: ChangeSince | None = None) -> ShownRow:
    text = masked(row.value if hasattr(row, "value") else row.content)
    return ShownRow(row, text[:SHOWN_CHARS], len(text) > SHOWN_CHARS, url, since)


def _sessions(request: HttpRequest, workspace: Workspace, at: datetime) -> dict[str, Any]:
    page = keyset_page(known_sessions(workspace, at), order=("key",), params=request.GET, size=PAGE_ROWS)
    return {"page": page, "sessions": sessions_at(page.rows, at)}


def _log_access(request: HttpRequest, workspace: Workspace, part: str, pks: Sequence[int]) -> None:
    action, table = LOGGED[part]
    seen: list[Seen] = seen_rows(table, pks)
    log_page_access(request, workspace, action, seen)


PART_VIEWS: dict[str, Callable[[HttpRequest, Workspace, datetime], dict[str, Any]]] = {
    "memory": _memory,
    "knowledge": _curated("knowledge"),
    "observations": _curated("observations"),
    "key-values": _curated("key-values"),
    "sessions": _sessions,
    "history": _history,
}
