"""The access log: who read what and how, and who read or changed a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from memoryhub.audit.access_log import Target, Touch, accesses_in, find_target, first_rows
from memoryhub.audit.access_log_forms import AccessFilterForm
from memoryhub.audit.read_rows import SHOWN_VIEWS, Place, places_of, summary_of
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.date_ranges import end_of_day, start_of_day
from memoryhub.lib.errors import NotFound
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import Page, keyset_page, parse_int
from memoryhub.models import AccessedRow, AccessRecord
from memoryhub.permissions import get_workspace
from sessions_app.models import Entry, Workspace

PAGE_ROWS, PAGE_VIEWS = 50, 100
WHOSE = {
    "agents": (_("Agents"), Q(actor_kind=AccessRecord.AGENT)),
    "people": (_("People"), ~Q(actor_kind=AccessRecord.AGENT)),
}


@dataclass(frozen=True)
class Line:
    """A line of the log. ``places``: label and URL of rows, "" if deleted; ``more``: the number of other rows.

    ``count``: the number of page views that it stands for.
    """

    pk: str
    at: datetime
    who: str
    is_agent: bool
    text: str
    via: str = ""
    is_change: bool = False
    places: Sequence[tuple[str, str]] = ()
    more: int = 0
    count: int = 1


@require_GET
def access_log(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    target = _get_target(request, workspace)
    form = AccessFilterForm(request.GET)
    filters = {name: value for name, value in form.cleaned_data.items() if value} if form.is_valid() else {}
    by = request.GET.get("by", "")
    rows = _filtered(target.accesses if target else accesses_in(workspace), filters)
    if by in WHOSE:
        rows = rows.filter(WHOSE[by][1])
    page = keyset_page(rows, order=("-id",), params=request.GET, size=PAGE_ROWS if target else PAGE_VIEWS)
    lines = _lines(workspace, [[row] for row in page.rows] if target else _groups(page.rows))
    if target and not filters and by not in WHOSE:
        touches = _within(target.touches, page, target.accesses)
        lines += [_touch_line(workspace, number, touch) for number, touch in enumerate(touches)]
        lines.sort(key=lambda line: line.at, reverse=True)
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "lines": lines,
        "target": target,
        "target_place": _target_place(workspace, target) if target else None,
        "by": by if by in WHOSE else "",
        "whose": [(name, label) for name, (label, _rows) in WHOSE.items()],
        "asked": {name: request.GET[name] for name in ("entry", "fact", "row") if request.GET.get(name)},
        "is_filtered": bool(filters) or by in WHOSE,
    }
    return render_page(request, "audit/access_log.html", context, fragment="access-list")


def _get_target(request: HttpRequest, workspace: Workspace) -> Target | None:
    entry, fact = parse_int(request.GET.get("entry")), parse_int(request.GET.get("fact"))
    row = request.GET.get("row", "")
    if entry is None and fact is None and not row:
        return None
    try:
        return find_target(workspace, entry=entry, fact=fact, row=row)
    except NotFound as error:
        raise Http404 from error


def _filtered(rows: QuerySet[AccessRecord], filters: Mapping[str, Any]) -> QuerySet[AccessRecord]:
    if who := filters.get("who"):
        rows = rows.filter(any_case("actor_name__icontains", who))
    for name in ("via", "action"):
        if value := filters.get(name):
            rows = rows.filter(**{name: value})
    if since := filters.get("since"):
        rows = rows.filter(at__gte=start_of_day(since))
    if until := filters.get("until"):
        rows = rows.filter(at__lte=end_of_day(until))
    return rows


def _within(touches: Iterable[Touch], page: Page[AccessRecord], accesses: QuerySet[AccessRecord]) -> list[Touch]:
    """Return the runs and changes between the accesses of a page, so that each is on one page only."""
    before = accesses.filter(pk__gt=page.rows[0].pk).order_by("pk").first() if page.previous_url else None
    upper = before.at if before else None
    lower = page.rows[-1].at if page.next_url else None
    return [
        touch for touch in touches if (upper is None or touch.at < upper) and (lower is None or touch.at >= lower)
    ]


def _groups(records: Sequence[AccessRecord]) -> list[list[AccessRecord]]:
    """Group a person's page views that follow each other; every other access is on its own."""
    groups: list[list[AccessRecord]] = []
    for record in records:
        last = groups[-1][-1] if groups else None
        if last and last.actor_name == record.actor_name and _is_view(last) and _is_view(record):
            groups[-1].append(record)
        else:
            groups.append([record])
    return groups


def _is_view(record: AccessRecord) -> bool:
    is_by_page = record.via == AccessRecord.Via.PAGE and not record.is_by_agent
    return is_by_page and not record.action.endswith(".exported")


def _lines(workspace: Workspace, groups: Sequence[Sequence[AccessRecord]]) -> list[Line]:
    rows = first_rows([record for group in groups for record in group[:SHOWN_VIEWS]])
    places = places_of(workspace, rows)
    return [_line(group, rows, places) for group in groups]


def _line(
    group: Sequence[AccessRecord],
    rows: Mapping[int, Sequence[AccessedRow]],
    places: Mapping[int, list[Place]],
) -> Line:
    record = group[0]
    text, shown, more = summary_of(group, rows, places)
    return Line(
        pk=f"access-{record.pk}",
        at=record.at,
        who=record.actor_name,
        is_agent=record.is_by_agent,
        text=text,
        via=record.get_via_display(),
        places=shown,
        more=more,
        count=len(group),
    )


def _touch_line(workspace: Workspace, number: int, touch: Touch) -> Line:
    places = []
    if touch.revision:
        document, revision = touch.revision
        url = reverse("documents:document", args=[workspace.slug, document])
        places.append((gettext("revision %(number)s") % {"number": revision}, f"{url}?revision={revision}"))
    if touch.run:
        places.append(
            (gettext("run %(number)s") % {"number": touch.run}, reverse("run", args=[workspace.slug, touch.run]))
        )
    return Line(
        f"touch-{number}",
        touch.at,
        touch.who,
        is_agent=False,
        text=touch.text,
        is_change=touch.is_change,
        via=pgettext("access method", "run") if touch.run else pgettext("access method", "export"),
        places=places,
    )


def _target_place(workspace: Workspace, target: Target) -> tuple[str, str]:
    """Return the text and the URL of a row, its label and "" if it was deleted."""
    if target.entry:
        return target.label, reverse("sessions:entry", args=[workspace.slug, target.entry.pk])
    if target.row is None or target.row[0] == "documents":
        return target.label, ""
    table, pk = target.row
    [place] = places_of(workspace, {0: [AccessedRow(table=table, parent=0, first=pk, last=pk)]})[0]
    return place if place[1] else (target.label, "")


@require_GET
def entry_access(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return the access log of an entry."""
    workspace = get_workspace(request, slug)
    entry = get_object_or_404(Entry, workspace=workspace, pk=pk)
    return redirect(f"{reverse('access', args=[slug])}?{urlencode({'entry': entry.pk})}")
