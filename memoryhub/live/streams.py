"""Server-sent events for open pages. A process reads the database once for all of its streams.

A message is a list of workspace ids: something changed there, or nothing if the list is empty (a heartbeat). It
doesn't say what changed; the page asks for that as if it polled.

PostgreSQL's NOTIFY isn't used: transactions that notify commit one after the other, in all databases of a server.
With 16 clients, that was 200 to 260 commits a second instead of 1,000.
"""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import Error

from memoryhub.lib.backoff import Backoff

logger = logging.getLogger(__name__)
PATH = "/changes/stream/"
TICK_SECONDS = 0.5  # between reads while streams are open
LONGEST_PAUSE = 10.0  # seconds between reads while they fail
HEARTBEAT_SECONDS = 20.0  # static/js/live-stream.js waits for two
MAX_STREAMS = 2_000  # of a process
MAX_PER_PERSON = 20  # of a process; a browser needs one
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),  # Caddy doesn't compress it then
    (b"x-accel-buffering", b"no"),  # nginx passes on each message
    (b"x-content-type-options", b"nosniff"),
]


@dataclass(frozen=True)
class News:
    """``known``: recent audit records, for the next call; ``told``: changed workspaces by login session; ``ended``:
    login sessions that no longer exist.
    """

    known: frozenset[int]
    told: Mapping[str, Collection[int]]
    ended: Collection[str] = ()


# Takes ``News.known`` (None at first), the people by login session, and the login sessions whose heartbeat is due.
Read = Callable[[frozenset[int] | None, Mapping[str, int], Collection[str]], Awaitable[News]]


class TooManyStreams(Exception):
    """This process has no room for another stream of this person."""


@dataclass(eq=False)
class Stream:
    """One open response. ``session``: the key of the login session; ``beat_at``: when its heartbeat is due."""

    session: str
    person: int
    beat_at: float = 0.0
    changed: set[int] = field(default_factory=set)
    is_over: bool = False
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, workspaces: Collection[int], now: float) -> None:
        self.changed.update(workspaces)
        if self.beat_at <= now:
            self.beat_at = now + HEARTBEAT_SECONDS
        self._woken.set()

    def end(self) -> None:
        self.is_over = True
        self._woken.set()

    async def write(self, send: Any) -> None:
        """Send messages until the stream ends. What changes while a client is slow becomes one message."""
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        while not self.is_over:
            await self._woken.wait()
            self._woken.clear()
            if not self.is_over:
                body = f"data: {json.dumps(sorted(self.changed))}\n\n".encode()
                self.changed.clear()
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class Streams:
    """The streams of this process."""

    def __init__(self) -> None:
        self.open: set[Stream] = set()
        self.is_followed = False  # whether streams can be opened

    @asynccontextmanager
    async def followed(self, read: Read) -> AsyncIterator[None]:
        """Tell streams what ``read`` returns, during the block."""
        task = asyncio.create_task(self._follow(read))
        self.is_followed = True
        try:
            yield
        finally:
            self.is_followed = False
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def serve(self, session: str, person: int, receive: Any, send: Any) -> None:
        """Respond with a stream until the client or the login session is gone. Raises TooManyStreams.

        Its first message comes after the next read, so it misses nothing that happens after that message.
        """
        if len(self.open) >= _most_streams() or self._of(person) >= MAX_PER_PERSON:
            raise TooManyStreams
        stream = Stream(session, person)
        self.open.add(stream)
        watching = asyncio.create_task(_disconnected(receive))
        watching.add_done_callback(lambda _: stream.end())
        try:
            await stream.write(send)
        finally:
            self.open.discard(stream)
            watching.cancel()

    def _of(self, person: int) -> int:
        return Counter(stream.person for stream in self.open)[person]

    async def _follow(self, read: Read) -> None:
        known: frozenset[int] | None = None
        backoff, pause = Backoff(2 * TICK_SECONDS, LONGEST_PAUSE), TICK_SECONDS
        while True:
            await asyncio.sleep(pause)
            pause = TICK_SECONDS
            if not self.open:
                known = None
                continue
            try:
                known = await self._tell(read, known)
                backoff.reset()
            except Exception as error:  # open pages notice that the heartbeats stop
                pause = backoff.next_pause()
                words = "can't read what changed for open pages; trying again in %.0f s: %s"
                logger.warning(words, pause, error, exc_info=not isinstance(error, Error))

    async def _tell(self, read: Read, known: frozenset[int] | None) -> frozenset[int]:
        streams, now = [*self.open], time.monotonic()
        people = {stream.session: stream.person for stream in streams}
        news = await read(known, people, {stream.session for stream in streams if stream.beat_at <= now})
        for stream in streams:
            if stream.session in news.ended:
                stream.end()
            elif stream.session in news.told:
                stream.tell(news.told[stream.session], now)
        return news.known


def _most_streams() -> int:
    """Return the limit of this process: a quarter of the files that it may open, at most MAX_STREAMS."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_STREAMS if soft == resource.RLIM_INFINITY else min(MAX_STREAMS, soft // 4)


async def _disconnected(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


open_streams = Streams()
