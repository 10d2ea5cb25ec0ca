"""The limits of the web server on incomplete requests."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import uvicorn

from memoryhub.live.streams import PATH
from memoryhub.management import http_server

PATIENCE_SECONDS = 30
HEAD = b"GET / HTTP/1.1\r\nHost: hub\r\n"


async def app(scope, receive, send) -> None:
    if scope["path"] == PATH:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        assert (await receive())["type"] == "http.request"
        assert (await receive())["type"] == "http.disconnect"
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def address(monkeypatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.3)
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    server = uvicorn.Server(http_server.server_config(app, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()
    server.should_exit = True
    thread.join()
    listener.close()


def send(address: tuple[str, int], data: bytes) -> socket.socket:
    connection = socket.create_connection(address, timeout=10)
    connection.sendall(data)
    return connection


def status(connection: socket.socket) -> bytes:
    return connection.recv(1000).partition(b"\r\n")[0]


def is_answered(address: tuple[str, int]) -> bool:
    with send(address, HEAD + b"\r\n") as connection:
        return status(connection) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("start", [b"", b"GET", HEAD])
def test_a_connection_without_complete_headers_is_closed(address, start):
    started_at = time.monotonic()
    with send(address, start) as connection:
        assert connection.recv(1000) == b""

    assert 0.2 < time.monotonic() - started_at < 5


def test_sending_headers_slowly_does_not_extend_the_timeout(address):
    started_at = time.monotonic()
    with send(address, HEAD) as connection, suppress(ConnectionError):
        while time.monotonic() - started_at < 5:
            connection.sendall(b"X-Slow: 1\r\n")
            time.sleep(0.05)

    assert time.monotonic() - started_at < 5


def test_the_second_request_of_a_connection_has_a_timeout_too(address):
    with send(address, HEAD + b"\r\n") as connection:
        reply = b""
        while not reply.endswith(b"ok"):
            reply += connection.recv(1000)
        connection.sendall(HEAD)
        assert connection.recv(1000) == b""


@pytest.mark.parametrize("start", [HEAD, b"POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 9\r\n\r\nhalf"])
def test_incomplete_requests_do_not_keep_out_others(address, start, monkeypatch):
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 60)
    monkeypatch.setattr(http_server, "MAX_INCOMPLETE", 20)
    half_sent = [send(address, start) for _ in range(60)]

    assert is_answered(address)

    for connection in half_sent:
        connection.close()


def test_the_open_file_limit_is_raised():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        assert http_server.raise_open_file_limit() > 512
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_open_streams_end_when_the_server_stops():
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(http_server.server_config(app, lifespan="off"))
    server.config.timeout_graceful_shutdown = None  # it stops when all responses have ended
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    with send(listener.getsockname(), HEAD.replace(b"/", PATH.encode(), 1) + b"\r\n") as stream:
        assert status(stream) == b"HTTP/1.1 200 OK"
        server.should_exit = True
        assert stream.recv(1000) == b""

    thread.join(PATIENCE_SECONDS)
    listener.close()
    assert not thread.is_alive()
