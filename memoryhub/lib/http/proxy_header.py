"""The header in which an authenticating proxy names the person.

memoryhub.asgi takes it out of every request, and passes the name on only if the connection comes from the proxy.
Servers other than ``manage.py serve`` don't tell where a connection comes from, so there is no name.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from django.conf import settings

PEER = "memoryhub.peer"  # key in the state of a connection: the address that it comes from
PERSON = "memoryhub.person"  # key in the scope of a request: the name that the proxy gave
Headers = Sequence[tuple[bytes, bytes]]


def take_person(headers: Headers, peer: str) -> tuple[Headers, str]:
    """Remove the proxy's header; return the other headers, and the name, or "" if the proxy didn't give exactly one.

    ``peer``: the address that the connection comes from, whatever other headers say.
    """
    wanted = settings.MEMORYHUB_PROXY_HEADER.encode()
    if not wanted:
        return headers, ""
    given = [value for name, value in headers if name.lower() == wanted]
    others = [pair for pair in headers if pair[0].lower() != wanted]
    if len(given) != 1 or not _is_proxy(peer):
        return others, ""
    return others, given[0].decode(errors="replace").strip(" \t")  # other spaces belong to the name


def _is_proxy(peer: str) -> bool:
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)  # on a socket for IPv6 and IPv4
    return any((mapped or address) in network for network in settings.MEMORYHUB_PROXY_ADDRESSES)
