"""Retries, and the cached() decorator without a reachable hub."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import httpx2
import pytest
from werkzeug import Response

from memoryhub.client import AsyncMemoryHub, Conflict, HubUnavailable, MemoryHub, TooManyCalls
from memoryhub.client.transport import RetryPolicy, plan_pause, retry_after
from tests.client.conftest import TOKEN, nap

NOW = datetime(2026, 4, 1, 12, tzinfo=UTC)
USUAL = RetryPolicy(3, 60)
VALUE = {"key": "region", "value": "eu", "updated_at": None}


def answer_in_turn(httpserver, *answers: Response) -> None:
    for answer in answers:
        httpserver.expect_ordered_request("/api/v1/value").respond_with_response(answer)


def ok() -> Response:
    return Response('{"key": "region", "value": "eu", "updated_at": null}', content_type="application/json")


def pause(outcome, *, tries=1, elapsed=0.0, chance=1.0, policy=USUAL):
    return plan_pause(outcome, tries=tries, elapsed=elapsed, policy=policy, chance=chance, now=NOW)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_write_is_retried_with_the_same_idempotency_key(client, httpserver, naps, status):
    answer_in_turn(httpserver, Response(status=status), Response(status=status), ok())

    assert client("write", "region", "eu") == VALUE

    keys = [request.headers["Idempotency-Key"] for request, _ in httpserver.log]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert 0.25 <= naps[0] <= 0.5 <= naps[1] <= 1


def test_each_call_gets_its_own_key_unless_given_one(client, httpserver):
    httpserver.expect_request("/api/v1/value").respond_with_json(VALUE)

    for key in ("", "", "turn-7"):
        client("write", "region", "eu", idempotency_key=key)

    first, second, given = [request.headers["Idempotency-Key"] for request, _ in httpserver.log]
    assert first != second
    assert given == "turn-7"


def test_retry_after_is_respected(client, httpserver, naps):
    answer_in_turn(httpserver, Response(status=429, headers={"Retry-After": "7"}), ok())

    assert client("read", "region") == "eu"

    assert 7 <= naps[0] <= 7.5


def test_retry_after_beyond_the_patience_raises_at_once(client, httpserver, naps):
    answer_in_turn(httpserver, Response(status=429, headers={"Retry-After": "3600"}))

    with pytest.raises(TooManyCalls) as raised:
        client("read", "region")

    assert (raised.value.retry_after, raised.value.status, naps) == (3600, 429, [])


def test_busy_hub_is_given_up_after_three_retries(client, httpserver, naps):
    httpserver.expect_request("/api/v1/value").respond_with_data("", status=503)

    with pytest.raises(HubUnavailable) as raised:
        client("read", "region")

    assert (raised.value.code, len(httpserver.log), len(naps)) == ("http_503", 4, 3)


def test_conflict_is_not_retried(client, httpserver):
    httpserver.expect_request("/api/v1/value").respond_with_json({"code": "idempotency_key_reused"}, status=409)

    with pytest.raises(Conflict):
        client("write", "region", "eu")

    assert len(httpserver.log) == 1


def test_unreachable_hub_is_retried(closed_port, naps):
    with pytest.raises(HubUnavailable, match="can't be reached") as raised:
        MemoryHub(closed_port, TOKEN, sleep=naps.append).me()

    assert (raised.value.code, raised.value.status, len(naps)) == ("unreachable", None, 3)
    assert TOKEN not in str(raised.value)


def test_broken_connection_is_retried(naps):
    answers = iter([httpx2.ReadTimeout("slow"), httpx2.RemoteProtocolError("cut"), httpx2.Response(200, json=VALUE)])

    def answer(request: httpx2.Request) -> httpx2.Response:
        outcome = next(answers)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with MemoryHub("http://hub", TOKEN, transport=httpx2.MockTransport(answer), sleep=naps.append) as hub:
        assert hub.read("region") == "eu"

    assert len(naps) == 2


def test_backoff_doubles_up_to_eight_seconds_with_jitter():
    busy = httpx2.Response(503)
    many = RetryPolicy(9, 60)

    assert [pause(busy, tries=tries, policy=many) for tries in (1, 2, 3, 4, 5, 6)] == [0.5, 1, 2, 4, 8, 8]
    assert pause(busy, tries=5, policy=many, chance=0) == 4


def test_no_retry_begins_after_the_patience():
    assert pause(httpx2.Response(503), elapsed=59.5) == 0.5
    assert pause(httpx2.Response(503), elapsed=59.6) is None
    assert pause(httpx2.Response(503), tries=4) is None
    assert pause(httpx2.UnsupportedProtocol("gopher")) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("12", 12),
        ("Wed, 01 Apr 2026 12:00:30 GMT", 30),
        ("Wed, 01 Apr 2026 11:00:00 GMT", 0),
        ("Wed, 01 Apr 2026 12:00:30 -0000", 30),
        ("soon", None),
        ("-3", None),
        ("", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(text, seconds):
    assert retry_after(httpx2.Response(429, headers={"Retry-After": text}), NOW) == seconds


def test_cached_function_is_called_once(httpserver):
    lookup = httpserver.expect_ordered_request("/api/v1/cache/lookup", json={"message": "Hi", "model": "small"})
    lookup.respond_with_json({"hit": False, "response": None})
    kept = {"message": "Hi", "model": "small", "response": "Hello"}
    httpserver.expect_ordered_request("/api/v1/cache", method="PUT", json=kept).respond_with_json({"kept": True})
    httpserver.expect_ordered_request("/api/v1/cache/lookup").respond_with_json({"hit": True, "response": "Hello"})
    asked = []

    with MemoryHub(httpserver.url_for("/"), TOKEN) as hub:

        @hub.cached(model="small")
        def ask(message: str) -> str:
            asked.append(message)
            return "Hello"

        assert [ask("Hi"), ask("Hi")] == ["Hello", "Hello"]

    assert (asked, ask.__name__) == (["Hi"], "ask")
    httpserver.check_assertions()


def test_cached_function_works_without_a_hub(closed_port, naps, caplog):
    hub = MemoryHub(closed_port, TOKEN, sleep=naps.append)

    assert hub.cached(model="small")(str.upper)("hi") == "HI"

    assert naps == []
    assert "unreachable" in caplog.text


def test_cached_function_works_if_the_response_cannot_be_stored(httpserver):
    httpserver.expect_request("/api/v1/cache/lookup").respond_with_json({"hit": False, "response": None})
    httpserver.expect_request("/api/v1/cache").respond_with_json({"code": "scope_missing"}, status=403)

    with MemoryHub(httpserver.url_for("/"), TOKEN) as hub:
        assert hub.cached(model="small")(str.upper)("hi") == "HI"


def test_async_client_retries_an_unreachable_hub(closed_port, naps):
    async def ask() -> None:
        async with AsyncMemoryHub(closed_port, TOKEN, sleep=nap) as hub:
            await hub.me()

    with pytest.raises(HubUnavailable, match="can't be reached"):
        asyncio.run(ask())

    assert len(naps) == 3


def test_unreachable_cache_raises_if_requested(closed_port):
    hub = MemoryHub(closed_port, TOKEN)

    with pytest.raises(HubUnavailable):
        hub.cached(model="small", on_error="raise")(str.upper)("hi")


def test_async_cached_function_works_without_a_hub(httpserver):
    async def shout(message: str) -> str:
        return message.upper()

    async def talk() -> list[str]:
        async with AsyncMemoryHub(httpserver.url_for("/"), TOKEN) as hub:
            ask = hub.cached(model="small")(shout)
            return [await ask("hi"), await ask("hi"), await ask("hi")]

    misses = [{"hit": False, "response": None}, {"hit": True, "response": "kept"}]
    httpserver.expect_ordered_request("/api/v1/cache/lookup").respond_with_json(misses[0])
    httpserver.expect_ordered_request("/api/v1/cache", method="PUT").respond_with_json({"kept": True})
    httpserver.expect_ordered_request("/api/v1/cache/lookup").respond_with_json(misses[1])
    httpserver.expect_ordered_request("/api/v1/cache/lookup").respond_with_data("", status=503)

    assert asyncio.run(talk()) == ["HI", "kept", "HI"]
