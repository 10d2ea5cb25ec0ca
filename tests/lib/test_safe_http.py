from __future__ import annotations

import gzip
import socket
import time
import tracemalloc
import zlib
from collections.abc import Callable

import httpcore2
import httpx2
import pytest
from pytest_httpserver import HTTPServer

from memoryhub.lib.http import safe_http
from memoryhub.lib.http.safe_http import AddressRefused, BodyTooLarge, DeadlinePassed, check_url, open_client

PUBLIC = "93.184.215.14"


@pytest.fixture
def names(monkeypatch) -> Callable[..., list[str]]:
    """Resolve host names to the given addresses, and return the list of looked-up names."""
    look_up, asked = socket.getaddrinfo, []

    def give(**addresses: list[str]) -> list[str]:
        def found(host, port, *rest, **options):
            if (plain := str(host).removesuffix(".example")) not in addresses:
                return look_up(host, port, *rest, **options)
            asked.append(host)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses[plain]]

        monkeypatch.setattr(socket, "getaddrinfo", found)
        return asked

    return give


@pytest.mark.parametrize("inside", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_host_with_one_private_address_is_refused(names, inside, is_first):
    names(two=[inside, PUBLIC] if is_first else [PUBLIC, inside])

    with pytest.raises(AddressRefused):
        check_url("https://two.example/")


def test_a_public_host_is_allowed(names):
    names(one=[PUBLIC])

    check_url("https://one.example/")


def test_the_checked_address_is_the_one_connected_to(names, httpserver: HTTPServer):
    httpserver.expect_request("/", headers={"Host": f"hook.example:{httpserver.port}"}).respond_with_data("here")
    asked = names(hook=["127.0.0.1"])

    with open_client(allowed={f"hook.example:{httpserver.port}"}, deadline_seconds=20) as client:
        assert client.get(f"http://hook.example:{httpserver.port}/").text == "here"

    assert asked == ["hook.example"]


@pytest.mark.parametrize("host", ["::", "ff02::1", "fe80::1%1", "fe80::1", "fd00:ec2::254"])
def test_special_ipv6_addresses_are_refused(host):
    with pytest.raises(AddressRefused, match="never connects"):
        check_url(f"http://[{host}]/", {f"{host}:80"})


@pytest.mark.parametrize("ipv4", ["7f00:1", "5db8:d70e"], ids=["loopback", "public"])
@pytest.mark.parametrize(
    "form",
    [
        "::{}",
        "::ffff:{}",
        "::ffff:0:{}",
        "64:ff9b::{}",
        "64:ff9b:1::{}",
        "2001:0:1::{}",
        "2002:{}::",
        "2606::5efe:{}",
    ],
    ids=["compatible", "mapped", "translated", "NAT64", "local NAT64", "Teredo", "6to4", "ISATAP"],
)
def test_ipv6_addresses_that_embed_ipv4_are_refused(form, ipv4):
    host = form.format(ipv4)

    with pytest.raises(AddressRefused, match="never connects"):
        check_url(f"http://[{host}]/", {f"{host}:80"})


@pytest.mark.parametrize(
    "host", ["fc00::1", "fec0::1", "100::1", "4000::1", "5f00::1", "3fff::1", "2001:db8::1", "::1"]
)
def test_only_global_ipv6_addresses_are_allowed(host):
    with pytest.raises(AddressRefused, match="private address"):
        check_url(f"http://[{host}]/")
    check_url(f"http://[{host}]/", {f"{host}:80"})


def test_a_global_ipv6_address_is_allowed():
    check_url("http://[2606:4700::1111]/")


@pytest.mark.parametrize(
    "url", ["https://user@one.example", "https://:password@one.example", f"https://{'a' * 64}.example"]
)
def test_urls_with_a_password_or_invalid_host_are_refused(url, names):
    names(one=[PUBLIC])

    with pytest.raises(AddressRefused):
        check_url(url)


def ask(httpserver: HTTPServer, *, deadline_seconds: float = 20) -> httpx2.Response:
    place = f"{httpserver.host}:{httpserver.port}"
    with open_client(allowed={place}, deadline_seconds=deadline_seconds) as client:
        return client.get(f"http://{place}/")


def test_a_reply_of_exactly_the_limit_is_read(httpserver, monkeypatch):
    monkeypatch.setattr(safe_http, "MAX_BODY_BYTES", 10)
    httpserver.expect_oneshot_request("/").respond_with_data("x" * 10)
    assert ask(httpserver).text == "x" * 10

    httpserver.expect_oneshot_request("/").respond_with_data("x" * 11)
    with pytest.raises(BodyTooLarge):
        ask(httpserver)


def test_a_redirect_is_not_followed(httpserver):
    httpserver.expect_request("/").respond_with_data("", status=302, headers={"Location": "http://10.0.0.1/"})

    assert ask(httpserver).status_code == 302


def test_no_request_is_sent_after_the_deadline(httpserver):
    with pytest.raises(httpx2.TimeoutException):
        ask(httpserver, deadline_seconds=0)

    assert httpserver.log == []


class DrippingStream(httpcore2.MockStream):
    """A reply of which each byte takes a second of the fake clock."""

    def __init__(self, reply: bytes, clock: list[float]) -> None:
        super().__init__([bytes([byte]) for byte in reply])
        self.clock = clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        assert timeout is None or timeout > 0
        self.clock[0] += 1
        return super().read(max_bytes, timeout)


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 60,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1;" + b"x" * 60 + b"\r\nx\r\n0\r\n\r\n",
    ],
    ids=["headers", "body", "chunk size"],
)
def test_a_reply_that_drips_ends_at_the_deadline(reply, names, monkeypatch):
    clock = [0.0]
    stream = DrippingStream(reply, clock)
    names(slow=[PUBLIC])
    monkeypatch.setattr(safe_http.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(httpcore2.SyncBackend, "connect_tcp", lambda *_args, **_options: stream)

    with (
        open_client(allowed=(), deadline_seconds=30) as client,
        pytest.raises((httpx2.TimeoutException, DeadlinePassed)),
    ):
        client.get("http://slow.example/")

    assert clock[0] <= 31


@pytest.mark.parametrize("value", ["é".encode(), "é".encode("latin-1"), b"\x80"])
def test_headers_in_other_letters_are_read(value, names, monkeypatch):
    reply = b"HTTP/1.1 200 OK\r\nX-Name: %b\r\nContent-Length: 4\r\n\r\nhere" % value
    names(public=[PUBLIC])
    monkeypatch.setattr(
        httpcore2.SyncBackend, "connect_tcp", lambda *_args, **_options: httpcore2.MockStream([reply])
    )

    with open_client(allowed=(), deadline_seconds=30) as client:
        response = client.get("http://public.example/")

    assert (response.status_code, response.text) == (200, "here")
    assert (b"X-Name", value) in response.headers.raw


def test_a_url_that_the_client_cannot_open_is_refused(names):
    names(**{"☃": [PUBLIC]})

    with pytest.raises(AddressRefused, match="not a valid URL"):
        check_url("http://☃.example/")


def respond_compressed(httpserver: HTTPServer, body: bytes, encoding: str = "gzip") -> None:
    httpserver.expect_oneshot_request("/").respond_with_data(body, headers={"Content-Encoding": encoding})


def test_an_uncompressed_reply_is_requested(httpserver):
    httpserver.expect_request("/", headers={"Accept-Encoding": "identity"}).respond_with_data("here")

    assert ask(httpserver).text == "here"


@pytest.mark.parametrize(
    ("encoding", "body"), [("gzip", gzip.compress(b"x" * 100_000)), ("deflate", zlib.compress(b"x" * 100_000))]
)
def test_a_compressed_reply_is_decoded(encoding, body, httpserver):
    respond_compressed(httpserver, body, encoding)

    reply = ask(httpserver)

    assert reply.content == b"x" * 100_000
    assert "content-encoding" not in reply.headers


def test_decoded_bytes_count_towards_the_limit(httpserver):
    respond_compressed(httpserver, gzip.compress(bytes(100 * 2**20)))

    tracemalloc.start()
    with pytest.raises(BodyTooLarge):
        ask(httpserver)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 * safe_http.MAX_BODY_BYTES


def test_the_deadline_applies_to_decoding(httpserver, monkeypatch):
    respond_compressed(httpserver, gzip.compress(bytes(4 * 2**20)))
    decoded = safe_http._decoded

    def slowly(chunks, encoding):
        for chunk in decoded(chunks, encoding):
            time.sleep(0.02)
            yield chunk

    monkeypatch.setattr(safe_http, "_decoded", slowly)

    with pytest.raises(DeadlinePassed):
        ask(httpserver, deadline_seconds=0.5)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", gzip.compress(b"x" * 1000)[:-9]), ("gzip", b"hello"), ("br", b"hello")],
    ids=["cut short", "not gzip", "unknown encoding"],  # gzip notes the time, and all processes need the same ids
)
def test_a_reply_that_cannot_be_decoded_is_an_error(encoding, body, httpserver):
    respond_compressed(httpserver, body, encoding)

    with pytest.raises(httpx2.DecodingError):
        ask(httpserver)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/\r\nX-A: b",
        "http://exa\tmple.org/",
        "http://example.org/ x",
        "http://example.org/\u202e",
        "http://example.org:25/",
        "http://example.org:0/",
        "http://example.org:\uff18\uff10/",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://example.org:99999/",
    ],
)
def test_unsafe_urls_are_refused_when_saved(url):
    with pytest.raises(AddressRefused):
        check_url(url)
