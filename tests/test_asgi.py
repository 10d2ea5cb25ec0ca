"""Bodies on their way to Django: whole, of a known length, and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from django.conf import settings

from memoryhub import asgi

CHUNKED = [(b"transfer-encoding", b"chunked")]


def part(body: bytes, *, is_last: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": not is_last}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What came through to Django: headers and body."""

    async def django(scope: Any, receive: Any, send: Any) -> None:
        body, message = b"", {"more_body": True}
        while message["more_body"]:
            message = await receive()
            body += message["body"]
        found.append((dict(scope["headers"]), body))

    found: list[Any] = []
    monkeypatch.setattr(asgi, "_django", django)
    return found


def send(headers: Sequence[tuple[bytes, bytes]], messages: Sequence[dict[str, Any]]) -> list[Any]:
    """Send a request in some messages, after which nothing comes; return what was answered without Django."""

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else await asyncio.Future()

    async def take(message: Any) -> None:
        answered.append(message)

    waiting, answered = list(messages), []
    scope = {"type": "http", "method": "POST", "path": "/login/", "headers": list(headers)}
    asyncio.run(asgi.application(scope, receive, take))
    return answered


def test_a_body_in_chunks_arrives_with_its_length(asked):
    send([*CHUNKED, (b"content-length", b"2")], [part(b'{"a"'), part(b": 1}", is_last=True)])

    assert asked == [({b"content-length": b"8"}, b'{"a": 1}')]


def test_a_form_that_breaks_off_goes_nowhere(asked):
    send([(b"content-length", b"20")], [part(b"content=half of"), {"type": "http.disconnect"}])

    assert asked == []


def test_a_body_that_is_not_there_in_time_keeps_nobody_waiting(asked, monkeypatch):
    monkeypatch.setattr(asgi, "BODY_SECONDS", 0.01)

    answered = send([(b"content-length", b"20")], [part(b"content=")])

    assert answered[0]["status"] == 408
    assert asked == []


def test_a_body_of_no_known_length_has_a_limit(asked, monkeypatch):
    monkeypatch.setattr(settings, "DATA_UPLOAD_MAX_MEMORY_SIZE", 10)

    answered = send(CHUNKED, [part(b"12345"), part(b"678901")])

    assert answered[0]["status"] == 413
    assert asked == []


def test_an_upload_may_be_larger_and_is_whole_too(asked, monkeypatch):
    monkeypatch.setattr(settings, "DATA_UPLOAD_MAX_MEMORY_SIZE", 10)
    monkeypatch.setattr(asgi, "IN_MEMORY", 5)

    send([(b"content-length", b"16")], [part(b"12345678"), part(b"90123456", is_last=True)])

    assert asked == [({b"content-length": b"16"}, b"1234567890123456")]


def test_what_is_larger_than_any_upload_is_not_waited_for(asked):
    assert send([(b"content-length", str(2**30).encode())], [])[0]["status"] == 413


def test_a_request_without_a_body_goes_on_as_it_is(asked):
    send([], [part(b"", is_last=True)])

    assert asked == [({}, b"")]
