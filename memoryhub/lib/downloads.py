"""Files that a page hands out."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils.http import content_disposition_header


def download(text: str, name: str) -> HttpResponse:
    """Return a text as a file that no browser runs as a page."""
    headers = {
        "Content-Disposition": content_disposition_header(as_attachment=True, filename=name) or "attachment",
        "Content-Security-Policy": "sandbox",
    }
    return HttpResponse(text, content_type="application/octet-stream", headers=headers)
