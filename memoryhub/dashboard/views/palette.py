"""The command palette, as a fragment of any page or a page of its own."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from memoryhub.dashboard.palette import MAX_ROWS, PaletteMatches, matches_label, palette_matches, share_rows
from memoryhub.dashboard.palette_commands import Row, commands, pages
from memoryhub.search.ranking import SearchResults
from memoryhub.search.views.rows import shown_hit
from memoryhub.search.views.search_params import search_place
from sessions_app.models import Workspace

MAX_CHARS = 200
NOTE_CHARS = 90


@require_GET
def palette(request: HttpRequest) -> HttpResponse:
    """The rows for the typed text (``q``), from the current workspace and page; without a script, a page."""
    text = request.GET.get("q", "").replace("\x00", " ")[:MAX_CHARS]
    place = search_place(request, request.GET.get("workspace") or None)
    here = request.GET.get("here", "")[:MAX_CHARS]
    zone = timezone.get_current_timezone()
    visible = Workspace.objects.visible_to(request.user)
    found = palette_matches(visible, place.scope, text, now=timezone.now(), zone=zone)
    context = {
        "groups": _groups(request, place.workspace, here, text, found),
        "q": text,
        "workspace": place.workspace,
        "here": here,
        "csrf_token": get_token(request),
    }
    if getattr(request, "htmx", False):  # rendered directly: context processors would query the navigation again
        response = HttpResponse(render_to_string("dashboard/palette.html#palette-rows", context | {"is_list": True}))
    else:
        response = render(request, "dashboard/palette.html", context)
    patch_vary_headers(response, ["HX-Request"])
    return response


def _groups(
    request: HttpRequest, workspace: Workspace | None, here: str, text: str, found: PaletteMatches
) -> list[tuple[str, list[Row]]]:
    """Return at most twelve rows by group, in a fixed order."""
    workspaces = [Row(one.name, "folder", reverse("workspace", args=[one.slug])) for one in found.workspaces]
    sessions = [*found.sessions, *found.conversations]
    groups = [
        (_("Pages"), [row for row in pages(request, workspace) if matches_label(row.label, text)]),
        (_("Commands"), [row for row in commands(request, workspace, here) if matches_label(row.label, text)]),
        (_("Workspaces"), workspaces),
        (_("Conversations"), [_row("sessions:detail", one, str(one), "sessions") for one in sessions]),
        (_("Documents"), [_row("documents:document", one, one.name, "memory") for one in found.documents]),
        (_("Memory"), _hits(found.found, "memory")),
        (_("Knowledge"), _hits(found.found, "knowledge")),
    ]
    search = [_search(workspace, text)] if text.strip() else []
    shared = share_rows([rows for _name, rows in groups], MAX_ROWS - len(search))
    named = [*zip((name for name, _rows in groups), shared, strict=True), (_("Search"), search)]
    return [(name, rows) for name, rows in named if rows]


def _row(name: str, one: Any, label: str, icon: str) -> Row:
    workspace = one.workspace
    return Row(label, icon, reverse(name, args=[workspace.slug, one.pk]), workspace.name)


def _hits(found: SearchResults | None, kind: str) -> list[Row]:
    hits = [shown_hit(hit, found) for hit in found.hits if hit.kind == kind] if found else []
    return [
        Row("".join(text for text, _is_hit in one.pieces)[:NOTE_CHARS], one.kind.icon, one.url, one.title)
        for one in hits
    ]


def _search(workspace: Workspace | None, text: str) -> Row:
    """Return a link to the search page, where the last word is a prefix, as in the palette."""
    url = reverse("search", args=[workspace.slug]) if workspace else reverse("hub-search")
    asked = urlencode({"q": text.strip(), "part": "1"})
    return Row(_("Search for “%(text)s”") % {"text": text.strip()}, "search", f"{url}?{asked}")
