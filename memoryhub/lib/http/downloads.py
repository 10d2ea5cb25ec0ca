"""Responses that download a file."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from django.utils.translation import gettext

from memoryhub.lib.errors import LimitExceeded

BYTES = "application/octet-stream"
MOST_COPIED = 20_000_000  # characters


def download(text: str | bytes, name: str) -> HttpResponse:
    """Return an attachment that browsers don't render or execute."""
    return HttpResponse(text, content_type=BYTES, headers=_headers(name))


def streaming_download(parts: Iterable[str], name: str) -> StreamingHttpResponse:
    """Return a streamed attachment that browsers don't render or execute."""
    return StreamingHttpResponse(parts, content_type=BYTES, headers=_headers(name))


def _headers(name: str) -> dict[str, str]:
    disposition = content_disposition_header(as_attachment=True, filename=name) or "attachment"
    return {"Content-Disposition": disposition, "Content-Security-Policy": "sandbox"}


def markdown_response(request: HttpRequest, text: str | Iterable[str], name: str) -> HttpResponseBase:
    """Return Markdown as an attachment, streamed if in parts, or with ``?copy=`` as plain text to copy.

    Raises LimitExceeded, with the address of the attachment, for more than 20 million characters to copy.
    """
    if "copy" in request.GET:
        copied = _joined(request, [text] if isinstance(text, str) else text)
        headers = {"Content-Security-Policy": "sandbox"}
        return HttpResponse(copied, content_type="text/plain; charset=utf-8", headers=headers)
    file = f"{safe_name(name)}.md"
    response = download(text, file) if isinstance(text, str) else streaming_download(text, file)
    response.headers["Content-Type"] = "text/markdown; charset=utf-8"
    return response


def _joined(request: HttpRequest, parts: Iterable[str]) -> str:
    found: list[str] = []
    size = 0
    for part in parts:
        found.append(part)
        size += len(part)
        if size > MOST_COPIED:
            query = request.GET.copy()
            del query["copy"]
            message = gettext(
                "This text is too long to copy: it has more than %(most)s characters. Download it instead."
            )
            raise LimitExceeded(
                message % {"most": f"{MOST_COPIED:,}"},
                code="too_much_markdown",
                download=f"{request.path}?{query.urlencode()}",
            )
    return "".join(found)


def safe_name(text: str) -> str:
    """Return text as a file name without extension: letters, digits, dots, dashes; at most 100 characters."""
    return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in text)[:100].lstrip(".") or "_"
