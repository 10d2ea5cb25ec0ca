"""Responses that download a file."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpResponse, StreamingHttpResponse
from django.utils.http import content_disposition_header

BYTES = "application/octet-stream"


def download(text: str | bytes, name: str) -> HttpResponse:
    """Return an attachment that browsers don't render or execute."""
    return HttpResponse(text, content_type=BYTES, headers=_headers(name))


def streaming_download(parts: Iterable[str], name: str) -> StreamingHttpResponse:
    """Return a streamed attachment that browsers don't render or execute."""
    return StreamingHttpResponse(parts, content_type=BYTES, headers=_headers(name))


def _headers(name: str) -> dict[str, str]:
    disposition = content_disposition_header(as_attachment=True, filename=name) or "attachment"
    return {"Content-Disposition": disposition, "Content-Security-Policy": "sandbox"}


def markdown_response(text: str, name: str, *, is_shown: bool = False) -> HttpResponse:
    """Return Markdown as an attachment, or with ``is_shown`` as plain text to copy from the browser."""
    if is_shown:
        return HttpResponse(
            text, content_type="text/plain; charset=utf-8", headers={"Content-Security-Policy": "sandbox"}
        )
    response = download(text, f"{safe_name(name)}.md")
    response.headers["Content-Type"] = "text/markdown; charset=utf-8"
    return response


def safe_name(text: str) -> str:
    """Return text as a file name without extension: letters, digits, dots, dashes; at most 100 characters."""
    return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in text)[:100].lstrip(".") or "_"
