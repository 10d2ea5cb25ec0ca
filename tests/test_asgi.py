"""Request bodies in ASGI: complete, with a length, and within the time limit."""

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
    """The headers and body that reached Django."""

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
    """Send a request in parts and then nothing; return the response if Django wasn't reached."""

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


def test_an_incomplete_form_is_not_passed_on(asked):
    send([(b"content-length", b"20")], [part(b"content=half of"), {"type": "http.disconnect"}])

    assert asked == []


def test_a_slow_body_times_out(asked, monkeypatch):
    monkeypatch.setattr(asgi, "BODY_SECONDS", 0.01)

    answered = send([(b"content-length", b"20")], [part(b"content=")])

    assert answered[0]["status"] == 408
    assert asked == []


def test_a_body_without_a_length_is_limited(asked, monkeypatch):
    monkeypatch.setattr(settings, "DATA_UPLOAD_MAX_MEMORY_SIZE", 10)

    answered = send(CHUNKED, [part(b"12345"), part(b"678901")])

    assert answered[0]["status"] == 413
    assert asked == []


def test_uploads_have_a_higher_limit(asked, monkeypatch):
    monkeypatch.setattr(settings, "DATA_UPLOAD_MAX_MEMORY_SIZE", 10)
    monkeypatch.setattr(asgi, "IN_MEMORY", 5)

    send([(b"content-length", b"16")], [part(b"12345678"), part(b"90123456", is_last=True)])

    assert asked == [({b"content-length": b"16"}, b"1234567890123456")]


def test_a_body_over_every_limit_is_refused_at_once(asked):
    assert send([(b"content-length", str(2**30).encode())], [])[0]["status"] == 413


def test_a_request_without_a_body_is_passed_on_unchanged(asked):
    send([], [part(b"", is_last=True)])

    assert asked == [({}, b"")]


def test_new_files_are_readable_only_by_their_owner(tmp_path):
    (tmp_path / "new").touch()

    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
