"""The hub's address, for agents and links."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.http import HttpRequest

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MCP_PATH = "/mcp"


def hub_address(request: HttpRequest, configured: str) -> str:
    """Return the configured address, or the request's if the configured one names only this machine."""
    is_local = urlsplit(configured).hostname in LOOPBACK
    return request.build_absolute_uri("/").rstrip("/") if is_local else configured


def address_at(host: str, configured: str) -> str:
    """Return the configured address, or that of a Host header if the configured one names only this machine."""
    parts = urlsplit(configured)
    return f"{parts.scheme}://{host}" if parts.hostname in LOOPBACK else configured


def is_resource(resource: str, base: str) -> bool:
    """Return whether a resource indicator (RFC 8707) names the hub's MCP endpoint. Without one, it is meant too."""
    return not resource or resource.removesuffix("/") == f"{base}{MCP_PATH}"
