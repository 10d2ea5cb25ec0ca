"""The hub's settings, read-only: they come from the environment."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from memoryhub.flows.knobs import complaints, hub, knobs
from memoryhub.lib.htmx import render_page
from memoryhub.lib.markdown import render_markdown


@require_GET
def hub_settings(request: HttpRequest) -> HttpResponse:
    if not getattr(request.user, "is_superuser", False):
        raise Http404
    context = {
        "hub": hub(),
        "complaints": complaints(),
        "knobs": [(knob, render_markdown(knob.effect)) for knob in knobs()],
    }
    return render_page(request, "memoryhub/hub_settings.html", context)
