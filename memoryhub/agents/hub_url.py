"""The address by which others reach this hub."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.http import HttpRequest

HERE = ("127.0.0.1", "localhost", "::1")


def hub_address(request: HttpRequest, configured: str) -> str:
    """Return the configured address, or where it names this machine only the one at which the page was asked for."""
    is_here = urlsplit(configured).hostname in HERE
    return request.build_absolute_uri("/").rstrip("/") if is_here else configured
