"""The hub's settings, read-only: they come from the environment."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from memoryhub.dashboard.hub_settings import complaints, hub, knobs
from memoryhub.lib.htmx import render_page
from memoryhub.lib.text.markdown import render_markdown
from memoryhub.permissions import require_hub_operator


@require_GET
def hub_settings(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    context = {
        "hub": hub(),
        "complaints": complaints(),
        "knobs": [(knob, render_markdown(knob.effect)) for knob in knobs()],
    }
    return render_page(request, "dashboard/hub_settings.html", context)
