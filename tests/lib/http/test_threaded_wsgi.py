from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from memoryhub.lib.http import threaded_wsgi
from memoryhub.lib.http.threaded_wsgi import ThreadedWSGI

Respond = Callable[[dict[str, Any]], HttpResponseBase]


def part(body: bytes, *, is_last: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": not is_last}


def ask(respond: Respond, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Send a request to a handler; return the messages of the response."""

    def handler(environ: dict[str, Any], start_response: Any) -> HttpResponseBase:
        response = respond(environ)
        cookies = [("Set-Cookie", cookie.output(header="")) for cookie in response.cookies.values()]
        start_response(f"{response.status_code} {response.reason_phrase}", [*response.items(), *cookies])
        return response

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    sent: list[dict[str, Any]] = []
    waiting = list(messages or [part(b"")])
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/x/",
        "query_string": b"",
        "http_version": "1.1",
        "headers": [],
    }
    asyncio.run(ThreadedWSGI(handler, threads=2)(scope, receive, send))
    return sent


def test_a_response_is_sent_with_its_headers_and_whole_body():
    def respond(environ: dict[str, Any]) -> HttpResponse:
        response = HttpResponse(environ["wsgi.input"].read(), status=201, headers={"X-Kind": "tea"})
        response.set_cookie("cup", "full")
        return response

    start, body = ask(respond, part(b"one"))

    assert start["status"] == 201
    assert (b"x-kind", b"tea") in start["headers"]
    assert (b"set-cookie", b"cup=full; Path=/") in start["headers"]
    assert body == {"type": "http.response.body", "body": b"one", "more_body": False}


def test_a_body_in_several_parts_is_read_as_one():
    sent = ask(
        lambda environ: HttpResponse(environ["wsgi.input"].read()),
        part(b"one ", is_last=False),
        part(b"two ", is_last=False),
        part(b"three"),
    )

    assert sent[-1]["body"] == b"one two three"


def test_a_long_stream_is_sent_in_parts_while_one_thread_reads_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threaded_wsgi, "SENT_TOGETHER", 10)
    threads: list[int] = []

    class Parts:
        def __iter__(self) -> Iterator[bytes]:
            for number in range(10):
                threads.append(threading.get_ident())
                yield f"part {number} ".encode()

        def close(self) -> None:
            threads.append(threading.get_ident())

    _start, *bodies = ask(lambda _environ: StreamingHttpResponse(Parts()))

    assert [one["body"] for one in bodies[:2]] == [b"part 0 part 1 ", b"part 2 part 3 "]
    assert [one["more_body"] for one in bodies] == [True] * 5 + [False]
    assert b"".join(one["body"] for one in bodies).endswith(b"part 9 ")
    assert len(threads) == 11
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


def test_a_slow_stream_is_sent_as_it_comes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threaded_wsgi, "SENT_WITHIN", -1)

    _start, *bodies = ask(lambda _environ: StreamingHttpResponse([b"one ", b"two "]))

    assert [one["body"] for one in bodies] == [b"one ", b"two ", b""]


def test_a_short_stream_is_sent_at_once():
    sent = ask(lambda _environ: StreamingHttpResponse([b"one ", b"two"]))

    assert [one.get("body") for one in sent] == [None, b"one two"]


def test_a_stream_that_fails_before_a_part_is_sent_starts_no_response():
    def parts() -> Iterator[bytes]:
        yield b"one"
        raise OSError("The disk is gone.")

    with pytest.raises(OSError, match="The disk is gone"):
        ask(lambda _environ: StreamingHttpResponse(parts()))
