"""The timeline of a workspace, with sliders that lead to time travel."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from memoryhub.audit.timeline import KINDS, Cursor, TimelineFilter, author_label, read_timeline
from memoryhub.audit.views.audit_log import MILLISECONDS
from memoryhub.lib.errors import LimitExceeded
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.search.matching import SearchTooSlow, time_limit
from memoryhub.lib.time_units import parse_range
from memoryhub.permissions import get_workspace
from memoryhub.time_travel.parsing import known_since, url_time
from memoryhub.time_travel.timeline import marks_of, suggested_moments
from memoryhub.time_travel.timeline import timeline as moments_line
from memoryhub.time_travel.views.snapshot import local_text
from sessions_app.models import Workspace


@require_GET
def timeline(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    kind = request.GET.get("kind", "")
    start, end = parse_range(request.GET.get("from"), request.GET.get("to"))
    wanted = TimelineFilter(kind if kind in KINDS else "", request.GET.get("who", "")[:200], start, end)
    try:
        with time_limit(connection, MILLISECONDS):
            page = read_timeline(workspace, wanted, Cursor.parse(request.GET.get("before", "")))
    except SearchTooSlow as error:
        raise LimitExceeded(
            gettext("Reading the log took too long. Choose a shorter period."), code="log_too_long"
        ) from error
    context = {
        "workspace": workspace,
        "page": page,
        "wanted": wanted,
        "who_label": author_label(wanted.who),
        "kinds": KINDS.items(),
        "is_filtered": wanted != TimelineFilter(),
        "is_older": "before" in request.GET,
        "slider": _slider(workspace, timezone.now()),
    }
    return render_page(request, "audit/timeline.html", context, fragment="timeline")


def _slider(workspace: Workspace, now: datetime) -> dict[str, object]:
    """Return the first and last moment of the sliders, and the runs and imports above them."""
    marks = marks_of(workspace)
    since = min([known_since(workspace), *(mark.at for mark in marks)])
    first = since + timedelta(seconds=1)
    return {
        "first": _moment(first),
        "last": _moment(max(now, first)),
        "since": since,
        "line": moments_line(marks, [], now) if marks else None,
        "quick": [(one.label, url_time(one.at)) for one in suggested_moments(marks, since, now)],
    }


def _moment(at: datetime) -> dict[str, object]:
    """Return a moment in the reader's time zone for a date field, and as its seconds since 1970 for a slider."""
    local = timezone.localtime(at).replace(tzinfo=UTC)
    return {"text": local_text(at), "seconds": int(local.timestamp())}
