"""The access log: who read what and how, and who read or changed a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, pgettext
from django.views.decorators.http import require_GET

from memoryhub.audit.access_log import Target, Touch, access_label, accesses_in, find_target, first_rows
from memoryhub.audit.access_log_forms import AccessFilterForm
from memoryhub.audit.read_rows import places_of
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.date_ranges import end_of_day, start_of_day
from memoryhub.lib.errors import NotFound
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import Page, keyset_page, parse_int
from memoryhub.models import AccessRecord
from memoryhub.permissions import get_workspace
from sessions_app.models import Entry, Workspace


@dataclass(frozen=True)
class Line:
    """A line of the log. ``places``: label and URL of rows, "" if deleted; ``more``: the number of other rows."""

    pk: str
    at: datetime
    who: str
    is_agent: bool
    text: str
    via: str = ""
    is_change: bool = False
    places: Sequence[tuple[str, str]] = ()
    more: int = 0


@require_GET
def access_log(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    target = _get_target(request, workspace)
    form = AccessFilterForm(request.GET)
    filters = {name: value for name, value in form.cleaned_data.items() if value} if form.is_valid() else {}
    rows = _filtered(target.accesses if target else accesses_in(workspace), filters)
    page = keyset_page(rows, order=("-id",), params=request.GET)
    lines = _lines(workspace, page.rows)
    if target and not filters:
        touches = _within(target.touches, page, target.accesses)
        lines += [_touch_line(workspace, number, touch) for number, touch in enumerate(touches)]
        lines.sort(key=lambda line: line.at, reverse=True)
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "lines": lines,
        "target": target,
        "target_url": _target_url(workspace, target) if target else "",
        "asked": {name: request.GET[name] for name in ("entry", "fact", "row") if request.GET.get(name)},
        "is_filtered": bool(filters),
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


def _lines(workspace: Workspace, records: Sequence[AccessRecord]) -> list[Line]:
    rows = first_rows(records)
    places = places_of(workspace, rows)
    return [
        Line(
            pk=f"access-{record.pk}",
            at=record.at,
            who=record.actor_name,
            is_agent=record.is_by_agent,
            text=access_label(record.action, record.row_count),
            via=record.get_via_display(),
            places=places[record.pk],
            more=record.row_count - sum(row.last - row.first + 1 for row in rows[record.pk]),
        )
        for record in records
    ]


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


def _target_url(workspace: Workspace, target: Target) -> str:
    if target.entry:
        return reverse("sessions:entry", args=[workspace.slug, target.entry.pk])
    if target.fact:
        return reverse("documents:fact", args=[workspace.slug, target.fact.pk])
    return ""


@require_GET
def entry_access(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return the access log of an entry."""
    workspace = get_workspace(request, slug)
    entry = get_object_or_404(Entry, workspace=workspace, pk=pk)
    return redirect(f"{reverse('access', args=[slug])}?{urlencode({'entry': entry.pk})}")
