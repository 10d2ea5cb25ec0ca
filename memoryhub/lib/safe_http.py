"""An HTTP client that protects against server-side request forgery.

A host name is resolved once, every address is checked, and the connection is made to a checked address, so that DNS
can't return another address in between. Redirects and proxies are not followed.
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

from memoryhub.lib.errors import LimitExceeded, Refused

MAX_BODY_BYTES = 5 * 2**20
CONNECT_SECONDS = 10.0
_METADATA = frozenset({"fd00:ec2::254", "100.100.100.200"})  # of clouds that use no link-local address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PORTS = {"http": 80, "https": 443}
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefused(Refused):
    """An address that the hub never connects to, or only if it is in MEMORYHUB_PRIVATE_HOSTS."""

    code = "address_refused"


class BodyTooLarge(LimitExceeded):
    code = "reply_too_large"


class DeadlinePassed(LimitExceeded):
    code = "deadline_passed"


def split_url(url: str) -> tuple[str, int]:
    """Return the host and port of an HTTP(S) URL. Raises AddressRefused if it isn't one."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise AddressRefused(gettext("This is not a valid URL: %(error)s.") % {"error": error}) from error
    if parts.scheme not in _PORTS or not host:
        raise AddressRefused(gettext("The URL must start with http:// or https:// and include a host."))
    if parts.username or parts.password:
        raise AddressRefused(gettext("The URL must not contain a user name or password."))
    return host, port or _PORTS[parts.scheme]


def check_url(url: str, allowed: Collection[str] = ()) -> None:
    """Raise AddressRefused for a URL that the client would refuse. A host name that can't be resolved passes."""
    host, port = split_url(url)
    try:
        _resolve(host, port, allowed)
    except OSError:
        return


def _resolve(host: str, port: int, allowed: Collection[str]) -> str:
    """Return an IP address of a host, after checking all of them. Raises AddressRefused, OSError."""
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise AddressRefused(gettext("%(host)s is not a valid host name.") % {"host": repr(host)}) from error
    addresses = [str(item[4][0]) for item in infos]
    for text in addresses:
        _check_address(ipaddress.ip_address(text.partition("%")[0]), host, port, allowed)
    return addresses[0]


def _check_address(address: Address, host: str, port: int, allowed: Collection[str]) -> None:
    address = _unwrapped(address)
    if address.is_link_local or address.is_multicast or address.is_unspecified or str(address) in _METADATA:
        message = gettext("%(host)s resolves to %(address)s, a reserved address that the hub never connects to.")
        raise AddressRefused(message % {"host": host, "address": address})
    if not address.is_global and f"{host}:{port}" not in allowed:
        message = gettext(
            "%(host)s resolves to %(address)s, a private address. "
            "To allow it, add %(host)s to MEMORYHUB_PRIVATE_HOSTS in the hub's environment."
        )
        raise AddressRefused(message % {"host": f"{host}:{port}", "address": address})


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 address, if any; otherwise the address itself."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return ipaddress.IPv4Address(address.packed[-4:])
        return address.ipv4_mapped or address.sixtofour or address
    return address


@cache
def _ssl_context() -> ssl.SSLContext:
    """Cached because loading the CA certificates can take longer than the request."""
    return httpx2.create_ssl_context(trust_env=False)


class CheckedTransport(httpx2.BaseTransport):
    """A transport that connects to checked addresses only and reads responses of up to 5 MB.

    ``deadline_seconds`` covers all requests of the transport together, including retries.
    """

    def __init__(self, *, allowed: Collection[str] = (), deadline_seconds: float) -> None:
        self._allowed = frozenset(allowed)
        self._deadline = time.monotonic() + deadline_seconds
        self._inner = httpx2.HTTPTransport(verify=_ssl_context(), trust_env=False)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise httpx2.ReadTimeout("the deadline has passed", request=request)
        host, port = split_url(str(request.url))
        try:
            address = _resolve(host, port, self._allowed)
        except OSError as error:
            raise httpx2.ConnectError(f"{host} can't be resolved: {error.strerror or error}") from error
        timeout = {
            "connect": min(CONNECT_SECONDS, remaining),
            "read": remaining,
            "write": remaining,
            "pool": remaining,
        }
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host, "timeout": timeout},
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
    """Return a client that uses CheckedTransport. Close it after use."""
    return httpx2.Client(
        transport=CheckedTransport(allowed=allowed, deadline_seconds=deadline_seconds),
        follow_redirects=False,
        trust_env=False,
    )
