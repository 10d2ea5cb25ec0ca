"""Response headers, compression of pages, and error pages."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from django_htmx.http import reswap, retarget

from memoryhub.lib.errors import MemoryHubError

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "object-src 'none'",
        "frame-ancestors 'none'",
    ]
)

GetResponse = Callable[[HttpRequest], HttpResponse]


def content_security_policy(get_response: GetResponse) -> GetResponse:
    """Forbid inline scripts and styles, foreign hosts and caching."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


class compress_pages(GZipMiddleware):  # noqa: N801 (named like a function, as settings list it)
    """Compress pages, padded against the BREACH attack. Files are sent unchanged, with their length."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = not response.streaming and response.headers.get("Content-Type", "").startswith("text/html")
        return super().process_response(request, response) if is_page else response


class render_expected_errors:  # noqa: N801 (named like a function, as settings list it)
    """Render a MemoryHubError as a page or message."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, MemoryHubError):
            return None
        if getattr(request, "htmx", False):  # show it as a message, whatever the page's target
            context = {"level": "problem", "title": error.message}
            response = render(request, "includes/notice.html", context, status=422)
            return reswap(retarget(response, "#messages"), "innerHTML")
        return render(request, "error.html", {"message": error.message}, status=422)
