"""Request headers with a meaning of their own, which can't name the person whom a proxy signed in."""

from __future__ import annotations

_NAMES = (
    "age authorization cache-control cdn-loop connection cookie cookie2 date dnt expect forwarded from host "
    "idempotency-key keep-alive last-event-id last-modified link max-forwards origin pragma prefer priority range "
    "referer te traceparent tracestate trailer transfer-encoding true-client-ip upgrade upgrade-insecure-requests "
    "user-agent via warning x-client-ip x-csrf-token x-csrftoken x-forwarded x-forwarded-by x-forwarded-for "
    "x-forwarded-host x-forwarded-path x-forwarded-port x-forwarded-prefix x-forwarded-proto x-forwarded-scheme "
    "x-forwarded-server x-forwarded-ssl x-forwarded-uri x-http-method-override x-real-ip x-request-id "
    "x-requested-with"
)
_BEGINNINGS = ("accept", "access-control-", "content-", "hx-", "if-", "mcp-", "proxy-", "sec-")


def has_other_meaning(name: str) -> bool:
    """Return whether clients, agents or other proxies send a header of this name, in lower case."""
    return name in _NAMES.split() or name.startswith(_BEGINNINGS)
