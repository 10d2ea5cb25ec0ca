"""Files that a page hands out."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils.http import content_disposition_header


def download(text: str | bytes, name: str) -> HttpResponse:
    """Return a text as a file that no browser runs as a page."""
    headers = {
        "Content-Disposition": content_disposition_header(as_attachment=True, filename=name) or "attachment",
        "Content-Security-Policy": "sandbox",
    }
    return HttpResponse(text, content_type="application/octet-stream", headers=headers)


def markdown(text: str, name: str, *, is_shown: bool = False) -> HttpResponse:
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
