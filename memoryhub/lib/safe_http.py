"""Requests that leave this machine: to addresses that were checked, at the address that was checked.

A name is resolved here, every address that it has is checked, and the connection goes to one of those, so that a
name can't change its meaning in between (reliability: server-side request forgery). No redirects, no proxies.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from collections.abc import Collection, Iterator
from functools import cache
from urllib.parse import urlsplit

import httpx2
from django.utils.translation import gettext

from memoryhub.lib.errors import MemoryHubError

MAX_BODY_BYTES = 5 * 2**20
CONNECT_SECONDS = 10.0
_METADATA = frozenset({"fd00:ec2::254", "100.100.100.200"})  # of clouds that use no link-local address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PORTS = {"http": 80, "https": 443}
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefused(MemoryHubError):
    """An address that the hub never connects to, or not without being told to."""

    code = "address_refused"


class BodyTooLarge(MemoryHubError):
    code = "reply_too_large"


class DeadlinePassed(MemoryHubError):
    code = "deadline_passed"


def split_url(url: str) -> tuple[str, int]:
    """Return host and port of an http(s) address. Raises AddressRefused where it is none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise AddressRefused(gettext("This is no web address: %(error)s.") % {"error": error}) from error
    if parts.scheme not in _PORTS or not host:
        raise AddressRefused(gettext("An address begins with http:// or https:// and names a host."))
    if parts.username or parts.password:
        raise AddressRefused(gettext("An address must not carry a user name or password."))
    return host, port or _PORTS[parts.scheme]


def check_url(url: str, allowed: Collection[str] = ()) -> None:
    """Raise AddressRefused for an address that would be refused when connecting; a name that has none passes."""
    host, port = split_url(url)
    try:
        _resolve(host, port, allowed)
    except OSError:
        return


def _resolve(host: str, port: int, allowed: Collection[str]) -> str:
    """Return an address of a host, after checking all of them. Raises AddressRefused, OSError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise AddressRefused(gettext("%(host)s is no host name.") % {"host": repr(host)}) from error
    addresses = [str(item[4][0]) for item in found]
    for text in addresses:
        _check_address(ipaddress.ip_address(text.partition("%")[0]), host, port, allowed)
    return addresses[0]


def _check_address(address: Address, host: str, port: int, allowed: Collection[str]) -> None:
    address = _unwrapped(address)
    never = address.is_link_local or address.is_multicast or address.is_unspecified or str(address) in _METADATA
    if never:
        words = gettext("%(host)s is at %(address)s, a link-local or metadata address: the hub never connects there.")
        raise AddressRefused(words % {"host": host, "address": address})
    if not address.is_global and f"{host}:{port}" not in allowed:
        words = gettext(
            "%(host)s is at %(address)s, inside this machine or network. "
            "Only the hub's environment can allow that: add %(host)s to MEMORYHUB_PRIVATE_HOSTS."
        )
        raise AddressRefused(words % {"host": f"{host}:{port}", "address": address})


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address inside an IPv6 one that carries it."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return ipaddress.IPv4Address(address.packed[-4:])
        return address.ipv4_mapped or address.sixtofour or address
    return address


@cache
def _trusted() -> ssl.SSLContext:
    """Read the certificates of authorities once: that takes longer than many a request."""
    return httpx2.create_ssl_context(trust_env=False)


class CheckedTransport(httpx2.BaseTransport):
    """Connects to checked addresses only; reads a reply whole, up to 5 MB and up to a deadline.

    ``deadline_seconds`` is for all requests together, repeated ones too, however slowly their bytes arrive: open a
    transport for one purpose, and close it.
    """

    def __init__(self, *, allowed: Collection[str] = (), deadline_seconds: float) -> None:
        self._allowed = frozenset(allowed)
        self._deadline = time.monotonic() + deadline_seconds
        self._inner = httpx2.HTTPTransport(verify=_trusted(), trust_env=False)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise httpx2.ReadTimeout("the time for this is used up", request=request)
        host, port = split_url(str(request.url))
        try:
            address = _resolve(host, port, self._allowed)
        except OSError as error:
            raise httpx2.ConnectError(f"{host} has no address: {error.strerror or error}") from error
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={
                **request.extensions,
                "sni_hostname": host,
                "timeout": {"connect": min(CONNECT_SECONDS, left), "read": left, "write": left, "pool": left},
            },
        )
        response = self._inner.handle_request(pinned)
        try:
            body = b"".join(_limited(response.stream, self._deadline))  # type: ignore[arg-type]
        finally:
            response.close()
        return httpx2.Response(response.status_code, headers=response.headers, content=body, request=request)

    def close(self) -> None:
        self._inner.close()


def _limited(chunks: Iterator[bytes], deadline: float) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise BodyTooLarge(f"The reply is larger than {MAX_BODY_BYTES // 2**20} MB.")
        if time.monotonic() > deadline:
            raise DeadlinePassed("The reply took too long.")
        yield chunk


def open_client(*, allowed: Collection[str], deadline_seconds: float) -> httpx2.Client:
    """Return a client for checked addresses. Close it after use."""
    return httpx2.Client(
        transport=CheckedTransport(allowed=allowed, deadline_seconds=deadline_seconds),
        follow_redirects=False,
        trust_env=False,
    )
