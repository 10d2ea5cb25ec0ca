"""The hub's address, for agents and links."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.http import HttpRequest

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def hub_address(request: HttpRequest, configured: str) -> str:
    """Return the configured address, or the request's if the configured one names only this machine."""
    is_local = urlsplit(configured).hostname in LOOPBACK
    return request.build_absolute_uri("/").rstrip("/") if is_local else configured
