"""Addresses to which people are sent back after they allowed or denied a client. Pure functions."""

from __future__ import annotations

import re
from urllib.parse import urlencode, urlsplit

from pydantic import AnyUrl, ConfigDict, TypeAdapter, ValidationError

from memoryhub.agents.hub_url import LOOPBACK

MAX_LENGTH = 2000
# Schemes of programs. Others need a dot, as in com.example.app (RFC 8252), which no scheme of a browser has.
PROGRAM_SCHEMES = ("claude", "cursor", "vscode", "vscode-insiders", "vscodium", "windsurf", "zed")
_PLAIN = re.compile(r"[!-~]+")
_URL: TypeAdapter[AnyUrl] = TypeAdapter(AnyUrl, config=ConfigDict(url_preserve_empty_path=True))


def parse_redirect(text: str) -> str | None:
    """Return the normal form of a redirect URI, or None for one that isn't allowed.

    Allowed are https, http to this machine, and programs' own schemes, without user names and fragments.
    """
    if len(text) > MAX_LENGTH or not _PLAIN.fullmatch(text) or "\\" in text:
        return None
    try:
        url = str(_URL.validate_python(text))
        parts = urlsplit(url)
        _ = parts.port
    except (ValidationError, ValueError):
        return None
    is_plain = bool(parts.netloc) and "@" not in parts.netloc and "#" not in url and len(url) <= MAX_LENGTH
    return url if is_plain and _PLAIN.fullmatch(url) and _is_known(parts.scheme, parts.hostname or "") else None


def _is_known(scheme: str, host: str) -> bool:
    if scheme == "http":
        return host in LOOPBACK
    return scheme == "https" or scheme in PROGRAM_SCHEMES or "." in scheme


def is_registered(url: str, registered: list[str]) -> bool:
    """Return whether a normal form is registered. On this machine the port may differ (RFC 8252, section 7.3)."""
    return url in registered or (_without_port(url) != url and _without_port(url) in map(_without_port, registered))


def _without_port(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname not in LOOPBACK:
        return url
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"http://{host}:*{parts.path or '/'}?{parts.query}"


def with_parameters(url: str, **values: str) -> str:
    """Add parameters to an address."""
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(values)}"


def destination(url: str) -> str:
    """Return who gets the response: a host name, or a program's scheme; "" for this machine."""
    parts = urlsplit(url)
    if parts.hostname in LOOPBACK and parts.scheme == "http":
        return ""
    return parts.netloc if parts.scheme == "https" else f"{parts.scheme}:"


def form_target(url: str) -> str:
    """Return a source for the policy ``form-action``, which browsers also apply to where a form redirects."""
    parts = urlsplit(url)
    has_plain_host = parts.scheme in ("http", "https") and ":" not in (parts.hostname or ":")
    return f"{parts.scheme}://{parts.netloc}" if has_plain_host else f"{parts.scheme}:"
