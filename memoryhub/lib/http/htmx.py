"""Render full pages and fragments from the same template."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails


def render_page(
    request: HttpRequest, template: str, context: dict[str, Any], *, fragment: str = "", status: int = 200
) -> HttpResponse:
    """Render a page, or only ``fragment`` of it for an htmx request.

    Boosted and history-restore requests get the full page.
    """
    htmx: HtmxDetails | None = getattr(request, "htmx", None)
    wants_fragment = bool(fragment and htmx and not htmx.boosted and not htmx.history_restore_request)
    name = f"{template}#{fragment}" if wants_fragment else template
    response = render(request, name, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response
