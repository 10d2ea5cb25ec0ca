"""Django as WSGI in threads, behind an ASGI server.

A request takes one trip to a thread and one back, with the whole response. a2wsgi's own middleware takes five, for
each part of the body and of the response, which cost as much processor time as a short call of the API.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

from a2wsgi.wsgi import Body, build_environ

SENT_TOGETHER, SENT_WITHIN = 2**16, 1.0  # bytes and seconds of a streaming response
Message = dict[str, Any]


class ThreadedWSGI:
    """An ASGI application that calls Django's WSGI handler in one of ``threads`` threads.

    A long streaming response is read in its thread, which waits until each part is sent.
    """

    def __init__(self, handler: Callable[..., Any], *, threads: int) -> None:
        self._handler = handler
        self.threads = ThreadPoolExecutor(threads, thread_name_prefix="WSGI")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        loop = asyncio.get_running_loop()
        first = await receive()
        is_whole = not first.get("more_body", False)
        body: Any = BytesIO(first.get("body", b"")) if is_whole else Body(loop, _from(first, receive))
        environ = build_environ(scope, body)

        def send_and_wait(message: Message) -> None:
            asyncio.run_coroutine_threadsafe(send(message), loop).result()

        run = contextvars.copy_context().run
        for message in await loop.run_in_executor(self.threads, run, self._answer, environ, send_and_wait):
            await send(message)

    def _answer(self, environ: Any, send_and_wait: Callable[[Message], None]) -> list[Message]:
        """Call Django, and send all of a long response but its end. Return the messages left to send."""
        start: Message = {"type": "http.response.start"}

        def start_response(status: str, headers: Sequence[tuple[str, str]]) -> None:
            start["status"] = int(status.split(" ", 1)[0])
            start["headers"] = [
                (name.strip().lower().encode("latin-1"), value.strip().encode("latin-1")) for name, value in headers
            ]

        response = self._handler(environ, start_response)
        left, parts, size, began = [start], [], 0, time.monotonic()
        try:
            for part in response:
                parts.append(part)
                size += len(part)
                is_due = size >= SENT_TOGETHER or time.monotonic() - began > SENT_WITHIN
                if is_due and response.streaming:
                    for message in (*left, _part(b"".join(parts), is_last=False)):
                        send_and_wait(message)
                    left, parts, size, began = [], [], 0, time.monotonic()
        finally:
            response.close()
        return [*left, _part(b"".join(parts))]


def _from(first: Message, receive: Any) -> Any:
    """Return a ``receive`` that returns a message again before the next ones."""
    taken = [first]

    async def receive_again() -> Any:
        return taken.pop() if taken else await receive()

    return receive_again


def _part(body: bytes, *, is_last: bool = True) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": not is_last}
