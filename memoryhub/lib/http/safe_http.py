"""An HTTP client that protects against server-side request forgery.

A host name is resolved once, every address is checked, and the connection is made to a checked address, so that DNS
can't return another address in between. Redirects and proxies are not followed.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
import zlib
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2
from django.utils.translation import gettext

from memoryhub.lib.errors import LimitExceeded, Refused

MAX_BODY_BYTES = 5 * 2**20
CONNECT_SECONDS = 10.0
# Ports of other services, which browsers refuse too: https://fetch.spec.whatwg.org/#port-blocking
# fmt: off
BAD_PORTS = frozenset((
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
    109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
    526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
    3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
))
# fmt: on
DECODED_CHUNK_BYTES = 2**16
WRITTEN_BYTES = 2**14  # between checks of the deadline
_METADATA = frozenset({"fd00:ec2::254", "100.100.100.200"})  # of clouds that use no link-local address
_IPV6_GLOBAL = ipaddress.ip_network("2000::/3")  # all other IPv6 ranges are special
_EMBEDDED_IPV4 = [  # IPv6 ranges whose addresses lead to an IPv4 address inside them
    ipaddress.ip_network(network)
    for network in (
        "::/96",
        "::ffff:0:0/96",
        "::ffff:0:0:0/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/32",
        "2002::/16",
    )
]
_LOOPBACK = ipaddress.ip_address("::1")
_NOT_GLOBAL = [ipaddress.ip_network("3fff::/20"), ipaddress.ip_network("192.88.99.0/24")]  # newer than ipaddress
_PORTS = {"http": 80, "https": 443}
_BODY_HEADERS = (b"content-encoding", b"content-length", b"transfer-encoding")  # of the body as it was sent
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
    if any(letter.isspace() or not letter.isprintable() for letter in url):
        raise AddressRefused(gettext("The URL must not contain blanks, line breaks or control characters."))
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        httpx2.URL(url)
    except (ValueError, httpx2.InvalidURL) as error:
        raise AddressRefused(gettext("This is not a valid URL: %(error)s.") % {"error": error}) from error
    if parts.scheme not in _PORTS or not host:
        raise AddressRefused(gettext("The URL must start with http:// or https:// and include a host."))
    if parts.username or parts.password:
        raise AddressRefused(gettext("The URL must not contain a user name or password."))
    if any(letter.isdigit() and not letter.isascii() for letter in host):
        raise AddressRefused(gettext("The URL's host must not contain digits of other scripts."))
    port = _PORTS[parts.scheme] if port is None else port
    if port in BAD_PORTS:
        raise AddressRefused(gettext("The URL must not have port %(port)s.") % {"port": port})
    return host, port


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
    if _is_forbidden(address):
        message = gettext("%(host)s resolves to %(address)s, a reserved address that the hub never connects to.")
        raise AddressRefused(message % {"host": host, "address": address})
    if not _is_global(address) and f"{host}:{port}" not in allowed:
        message = gettext(
            "%(host)s resolves to %(address)s, a private address. "
            "To allow it, add %(host)s to MEMORYHUB_PRIVATE_HOSTS in the hub's environment."
        )
        raise AddressRefused(message % {"host": f"{host}:{port}", "address": address})


def _is_forbidden(address: Address) -> bool:
    """Return whether an address is link-local, multicast, unspecified, of a metadata service, or embeds IPv4."""
    if address.is_link_local or address.is_multicast or address.is_unspecified or str(address) in _METADATA:
        return True
    return address.version == 6 and address != _LOOPBACK and _embeds_ipv4(address)


def _embeds_ipv4(address: Address) -> bool:
    is_isatap = address.packed[8:12] in (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")
    return is_isatap or any(address in network for network in _EMBEDDED_IPV4)


def _is_global(address: Address) -> bool:
    is_in_range = address.version == 4 or address in _IPV6_GLOBAL
    return is_in_range and address.is_global and not any(address in network for network in _NOT_GLOBAL)


@cache
def _ssl_context() -> ssl.SSLContext:
    """Cached because loading the CA certificates can take longer than the request."""
    return httpx2.create_ssl_context(trust_env=False)


class _DeadlineBackend(httpcore2.NetworkBackend):
    """Connects with streams that end at the deadline: httpx's timeouts begin anew with each byte received."""

    def __init__(self, inner: httpcore2.NetworkBackend, deadline: float) -> None:
        self._inner = inner
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        timeout = min(_remaining(self._deadline), timeout or CONNECT_SECONDS)
        stream = self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        return _DeadlineStream(stream, self._deadline)


class _DeadlineStream(httpcore2.NetworkStream):
    """A stream whose reads and writes take until the deadline at most, whatever their own timeouts."""

    def __init__(self, inner: httpcore2.NetworkStream, deadline: float) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002  it isn't shorter
        return self._inner.read(max_bytes, _remaining(self._deadline))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        for start in range(0, len(buffer), WRITTEN_BYTES):
            self._inner.write(buffer[start : start + WRITTEN_BYTES], _remaining(self._deadline))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        timeout = min(_remaining(self._deadline), timeout or CONNECT_SECONDS)
        return _DeadlineStream(self._inner.start_tls(ssl_context, server_hostname, timeout), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _remaining(deadline: float) -> float:
    """Return the seconds to the deadline. Raises ReadTimeout if it has passed."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise httpcore2.ReadTimeout("the deadline has passed")
    return seconds


class CheckedTransport(httpx2.BaseTransport):
    """A transport that connects to checked addresses only and reads responses of up to 5 MB.

    It asks for uncompressed responses. If a server compresses nevertheless, the limit counts decoded bytes.
    ``deadline_seconds`` covers all requests of the transport together, including retries, headers and decoding.
    """

    def __init__(self, *, allowed: Collection[str] = (), deadline_seconds: float) -> None:
        self._allowed = frozenset(allowed)
        self._deadline = time.monotonic() + deadline_seconds
        self._inner = httpx2.HTTPTransport(verify=_ssl_context(), trust_env=False)
        backend = _DeadlineBackend(httpcore2.SyncBackend(), self._deadline)
        self._inner._pool = httpcore2.ConnectionPool(_ssl_context(), network_backend=backend)  # no public parameter

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
            headers={**request.headers, "accept-encoding": "identity"},
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host, "timeout": timeout},
        )
        response = self._inner.handle_request(pinned)
        try:
            encoding = response.headers.get("content-encoding", "identity").strip().lower()
            received = _limited(response.stream, self._deadline)  # type: ignore[arg-type]
            body = b"".join(_limited(_decoded(received, encoding), self._deadline))
        except zlib.error as error:
            raise httpx2.DecodingError(f"the reply can't be decoded: {error}", request=request) from error
        finally:
            response.close()
        headers = [pair for pair in response.headers.raw if pair[0].lower() not in _BODY_HEADERS]
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)

    def close(self) -> None:
        self._inner.close()


def _decoded(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the decoded body in small chunks, however well it was compressed. Raises zlib.error."""
    if encoding in ("identity", ""):
        yield from chunks
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise zlib.error(f"unsupported encoding {encoding:.40}")
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, by its header
    for chunk in chunks:
        data = chunk
        while data and not decoder.eof:
            yield decoder.decompress(data, DECODED_CHUNK_BYTES)
            data = decoder.unconsumed_tail
    while tail := decoder.decompress(decoder.unconsumed_tail, DECODED_CHUNK_BYTES):
        yield tail
    if not decoder.eof:
        raise zlib.error("the compressed data ends early")


def _limited(chunks: Iterable[bytes], deadline: float) -> Iterator[bytes]:
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
