"""Request ids, parameters, response headers, compression of pages, and error pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.http.response import HttpResponseBase, HttpResponseNotAllowed
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from django.utils.translation import gettext
from django_htmx.http import reswap, retarget

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.problem_details import MEDIA_TYPE, problem_document
from memoryhub.lib.http.request_ids import HEADER, current_request_id, identified
from memoryhub.lib.validation import clean_text

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

FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")
_FIELD_OR_CONTROL = re.compile(
    rb'<textarea\b.*?</textarea>|\bvalue="[^"]*"|(?P<control>' + _CONTROL.pattern + rb")", re.DOTALL
)
GetResponse = Callable[[HttpRequest], HttpResponse]


def identify_requests(get_response: GetResponse) -> GetResponse:
    """Give each request an id, and return it in the response."""

    def middleware(request: HttpRequest) -> HttpResponse:
        given = current_request_id() or request.headers.get(HEADER, "")  # memoryhub.asgi has set it already
        with identified(given) as request_id:
            request.META["HTTP_X_REQUEST_ID"] = request_id  # for records that are logged when middleware has ended
            response = get_response(request)
        response.headers[HEADER] = request_id
        return response

    return middleware


def content_security_policy(get_response: GetResponse) -> GetResponse:
    """Forbid inline scripts and styles, foreign hosts and caching."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


def show_control_characters(get_response: GetResponse) -> GetResponse:
    """Show control characters of stored text as symbols, except in fields, which must keep them."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        if is_page and not response.streaming and _CONTROL.search(response.content):
            response.content = _FIELD_OR_CONTROL.sub(_symbol, response.content)
        return response

    return middleware


def _symbol(match: re.Match[bytes]) -> bytes:
    control = match["control"]
    if not control:
        return match[0]
    code = control[-1]
    if len(control) > 1:
        return f"\\x{code:02x}".encode()
    return chr(0x2421 if code == 0x7F else 0x2400 + code).encode()


class clean_parameters:  # noqa: N801 (named like a function, as settings list it)
    """Make every parameter storable: NUL and lone surrogates become visible escapes, as in ``clean_text``."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not _is_utf8(request):
            detail = "Send parameters and bodies in UTF-8."
            return JsonResponse(problem_document(415, "not_utf8", detail), status=415, content_type=MEDIA_TYPE)
        if cleaned := _cleaned(request.GET):
            request.GET = cleaned  # type: ignore[assignment]
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, _view: object, _args: Sequence[object], kwargs: dict[str, object]
    ) -> None:
        if any(isinstance(value, str) and clean_text(value) != value for value in kwargs.values()):
            raise Http404
        if request.content_type in FORM_TYPES and (cleaned := _cleaned(request.POST)):
            request.POST = cleaned  # type: ignore[assignment]


def _is_utf8(request: HttpRequest) -> bool:
    """Return whether a request is in UTF-8. Other charsets could decode to text that can't be encoded."""
    return (request.content_params or {}).get("charset", "utf-8").lower() in ("utf-8", "utf8", "us-ascii")


def _cleaned(values: QueryDict) -> QueryDict | None:
    """Return a cleaned copy, or None if it would be the same."""
    lists = {clean_text(name): [clean_text(value) for value in texts] for name, texts in values.lists()}
    if lists == dict(values.lists()):
        return None
    cleaned = QueryDict(mutable=True)
    for name, texts in lists.items():
        cleaned.setlist(name, texts)
    return cleaned


class compress_pages(GZipMiddleware):  # noqa: N801 (named like a function, as settings list it)
    """Compress pages, padded against the BREACH attack. Files are sent unchanged, with their length."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = not response.streaming and response.headers.get("Content-Type", "").startswith("text/html")
        return super().process_response(request, response) if is_page else response


class render_expected_errors:  # noqa: N801 (named like a function, as settings list it)
    """Render a MemoryHubError as a page or message, and a page where a browser opens what is only for forms."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if isinstance(response, HttpResponseNotAllowed) and request.method == "GET" and not response.content:
            context = {"message": gettext("There is no page at this address: only forms are sent to it.")}
            page = render(request, "error.html", context, status=405)
            page.headers["Allow"] = response.headers["Allow"]
            return page
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, MemoryHubError):
            return None
        if getattr(request, "htmx", False):  # show it as a message, whatever the page's target
            context = {"level": "problem", "title": error.message}
            response = render(request, "includes/notice.html", context, status=422)
            return reswap(retarget(response, "#messages"), "innerHTML")
        address = str(error.details.get("download", ""))
        context = {"message": error.message, "download": address}
        return render(request, "error.html", context, status=422)
