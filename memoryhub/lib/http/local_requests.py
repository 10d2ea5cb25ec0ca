"""Tell requests of programs on this machine from all others."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

PROXY_HEADERS = frozenset(("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"))


def is_from_this_machine(address: str, header_names: Iterable[str]) -> bool:
    """Return whether a request comes from this machine, and not through a proxy on it."""
    if any(name.lower() in PROXY_HEADERS for name in header_names):
        return False
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
