from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.defaults import page_not_found

from memoryhub.permissions import HubOperatorsOnly, RoleTooLow


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render the page for a 404. People whose role is too low learn that: members of a workspace, and in the hub."""
    if isinstance(exception, HubOperatorsOnly):
        return render(request, "403.html", {"for_hub_operators": True}, status=403)
    if isinstance(exception, RoleTooLow):
        return render(request, "403.html", {"code": 404}, status=404)
    return page_not_found(request, exception)
