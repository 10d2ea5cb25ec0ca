"""Files that a page hands out."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpResponse, StreamingHttpResponse
from django.utils.http import content_disposition_header

BYTES = "application/octet-stream"


def download(text: str | bytes, name: str) -> HttpResponse:
    """Return a text as a file that no browser runs as a page."""
    return HttpResponse(text, content_type=BYTES, headers=_headers(name))


def streaming_download(parts: Iterable[str], name: str) -> StreamingHttpResponse:
    """Return a text that comes in parts as a file that no browser runs as a page."""
    return StreamingHttpResponse(parts, content_type=BYTES, headers=_headers(name))


def _headers(name: str) -> dict[str, str]:
    disposition = content_disposition_header(as_attachment=True, filename=name) or "attachment"
    return {"Content-Disposition": disposition, "Content-Security-Policy": "sandbox"}


def markdown_response(text: str, name: str, *, is_shown: bool = False) -> HttpResponse:
    """Return Markdown as a file; with ``is_shown`` as plain text in the browser, for copying from there."""
    if is_shown:
        return HttpResponse(
            text, content_type="text/plain; charset=utf-8", headers={"Content-Security-Policy": "sandbox"}
        )
    response = download(text, f"{safe_name(name)}.md")
    response.headers["Content-Type"] = "text/markdown; charset=utf-8"
    return response


def safe_name(text: str) -> str:
    """Return text as the stem of a file's name: letters, digits, points and dashes, 100 characters at most."""
    return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in text)[:100].lstrip(".") or "_"
