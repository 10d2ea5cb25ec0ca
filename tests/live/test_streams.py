"""Streams of open pages: who is told what, without a database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import pytest
from django.db import OperationalError

from memoryhub.live import streams
from memoryhub.live.streams import News, Streams, TooManyStreams

OLGA, ADA = ("key-of-olga", 1), ("key-of-ada", 2)
Reading = Callable[[Mapping[str, int], Collection[str]], News]


class Browser:
    """The other end of a stream."""

    def __init__(self) -> None:
        self.status = 0
        self.said: asyncio.Queue[bytes] = asyncio.Queue()
        self.closed = asyncio.Event()
        self.is_done = False

    async def receive(self) -> dict[str, Any]:
        await self.closed.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.status = message.get("status", self.status)
        if message.get("body"):
            self.said.put_nowait(message["body"])
        self.is_done = message["type"] == "http.response.body" and not message.get("more_body", False)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "TICK_SECONDS", 0.001)


def run(work: Callable[[Streams], Awaitable[None]], read: Reading) -> None:
    async def reading(_known: frozenset[int] | None, people: Mapping[str, int], due: Collection[str]) -> News:
        return read(people, due)

    async def all_of_it() -> None:
        own = Streams()
        async with asyncio.timeout(30), own.followed(reading):
            assert own.is_followed
            await work(own)
        assert not own.is_followed

    asyncio.run(all_of_it())


def opened(own: Streams, who: tuple[str, int]) -> tuple[Browser, asyncio.Task[None]]:
    browser = Browser()
    return browser, asyncio.create_task(own.serve(*who, browser.receive, browser.send))


def heartbeats(people: Mapping[str, int], due: Collection[str]) -> News:
    return News(frozenset(), dict.fromkeys(due, ()))


def test_a_stream_begins_with_a_message_and_ends_with_the_browser():
    async def work(own: Streams) -> None:
        browser, task = opened(own, OLGA)
        assert await browser.said.get() == b"data: []\n\n"
        assert (browser.status, len(own.open)) == (200, 1)
        browser.closed.set()
        await task
        assert own.open == set()

    run(work, heartbeats)


def test_each_person_is_told_their_own_workspaces():
    async def work(own: Streams) -> None:
        olga, _ = opened(own, OLGA)
        ada, _ = opened(own, ADA)
        assert await olga.said.get() == b"data: [3, 7]\n\n"
        assert await ada.said.get() == b"data: [7]\n\n"

    run(work, lambda people, due: News(frozenset(), {"key-of-olga": {7, 3}, "key-of-ada": {7}}))


def test_changes_become_one_message_while_a_client_is_slow():
    async def work(own: Streams) -> None:
        browser, _ = opened(own, OLGA)
        await browser.said.get()
        [stream] = own.open
        stream.tell({4}, now=0.0)
        stream.tell({2, 4}, now=0.0)
        assert await browser.said.get() == b"data: [2, 4]\n\n"
        stream.tell((), now=0.0)
        assert await browser.said.get() == b"data: []\n\n"

    run(work, heartbeats)


def test_a_stream_ends_with_its_login_session():
    async def work(own: Streams) -> None:
        browser, task = opened(own, OLGA)
        await task
        assert browser.is_done
        assert browser.said.empty()

    run(work, lambda people, due: News(frozenset(), {session: {1} for session in people}, ended=set(people)))


def test_heartbeats_are_repeated(monkeypatch):
    monkeypatch.setattr(streams, "HEARTBEAT_SECONDS", 0.001)

    async def work(own: Streams) -> None:
        browser, _ = opened(own, OLGA)
        assert [await browser.said.get() for _ in range(3)] == [b"data: []\n\n"] * 3

    run(work, heartbeats)


def test_news_do_not_put_off_the_heartbeat_that_checks_the_session(monkeypatch):
    monkeypatch.setattr(streams, "HEARTBEAT_SECONDS", 0.02)
    due_at: list[int] = []

    def news(people: Mapping[str, int], due: Collection[str]) -> News:
        due_at.append(len(due))
        return News(frozenset(), {session: {1} for session in people})

    async def work(own: Streams) -> None:
        browser, _ = opened(own, OLGA)
        while sum(due_at) < 3:
            await browser.said.get()

    run(work, news)
    assert 0 in due_at


def test_streams_are_limited_by_person_and_in_total(monkeypatch):
    monkeypatch.setattr(streams, "MAX_PER_PERSON", 2)
    monkeypatch.setattr(streams, "MAX_STREAMS", 3)

    async def refused(own: Streams, who: tuple[str, int]) -> bool:
        browser = Browser()
        try:
            await own.serve(*who, browser.receive, browser.send)
        except TooManyStreams:
            return True
        return False

    async def work(own: Streams) -> None:
        for _ in range(2):
            await opened(own, OLGA)[0].said.get()
        assert await refused(own, OLGA)
        await opened(own, ADA)[0].said.get()
        assert await refused(own, ADA)

    run(work, heartbeats)


def test_nothing_is_read_while_no_stream_is_open():
    asked = []

    async def work(own: Streams) -> None:
        await asyncio.sleep(0.05)
        assert asked == []
        browser, task = opened(own, OLGA)
        await browser.said.get()
        browser.closed.set()
        await task

    def read(people: Mapping[str, int], due: Collection[str]) -> News:
        asked.append(people)
        return heartbeats(people, due)

    run(work, read)


@pytest.mark.parametrize("fault", [OperationalError("gone"), LookupError("a mistake")])
def test_a_fault_does_not_end_the_reading(fault, caplog):
    faults = [fault]

    def read(people: Mapping[str, int], due: Collection[str]) -> News:
        with suppress(IndexError):
            raise faults.pop()
        return heartbeats(people, due)

    async def work(own: Streams) -> None:
        assert await opened(own, OLGA)[0].said.get() == b"data: []\n\n"

    run(work, read)
    assert "can't read what changed" in caplog.text


def test_reads_that_fail_are_repeated_more_and_more_slowly(monkeypatch):
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def no_sleep(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    def read(people: Mapping[str, int], due: Collection[str]) -> News:
        if 4 <= len(pauses) < 12:
            raise OperationalError("the database is away")
        return heartbeats(people, due)

    async def work(own: Streams) -> None:
        monkeypatch.setattr(asyncio, "sleep", no_sleep)
        opened(own, OLGA)
        while len(pauses) < 16:
            await sleep(0)

    monkeypatch.setattr(streams, "TICK_SECONDS", 0.5)
    run(work, read)
    assert pauses[3:16] == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0, 0.5, 0.5, 0.5, 0.5]
