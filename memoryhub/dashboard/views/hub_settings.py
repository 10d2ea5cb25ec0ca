"""The hub's settings, read-only: they are environment variables."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from memoryhub.dashboard.hub_settings import deployment_warnings, hub, list_settings
from memoryhub.lib.htmx import render_page
from memoryhub.lib.text.markdown import render_markdown
from memoryhub.permissions import require_hub_operator


@require_GET
def hub_settings(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    context = {
        "hub": hub(),
        "warnings": deployment_warnings(),
        "settings": [(setting, render_markdown(setting.effect)) for setting in list_settings()],
    }
    return render_page(request, "dashboard/hub_settings.html", context)
