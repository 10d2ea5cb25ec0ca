"""The network that an address belongs to, for limits."""

from __future__ import annotations

import ipaddress


def network_of(address: str) -> str:
    """Return the address, or the /64 network of an IPv6 address, which is usually one customer's."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else address
