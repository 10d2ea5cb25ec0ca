from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.defaults import page_not_found

from memoryhub.permissions import RoleTooLow


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render the page for a 404. Members of a workspace learn that their role is too low for an address."""
    if isinstance(exception, RoleTooLow):
        return render(request, "403.html", {"code": 404}, status=404)
    return page_not_found(request, exception)
