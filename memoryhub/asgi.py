"""What `manage.py serve` runs: Django as WSGI in a thread pool behind ASGI, several times faster than as ASGI.

MCP stands beside it, as ASGI: it answers /mcp and needs the lifespan that uvicorn keeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

from a2wsgi import WSGIMiddleware
from django.conf import settings

from memoryhub.wsgi import application as django_application

# isort: split
from memoryhub.mcp import transport
from memoryhub.sync.forms import MAX_UPLOAD_BYTES

THREADS = 10  # pages are short and SQLite has one writer; more threads would only wait
BODY_SECONDS, UPLOAD_SECONDS = 60, 900  # in which a body, or one with a file, has to be there
ROUND_UPLOAD = 2**20  # bytes that a form may have beside its file
IN_MEMORY = 2**20  # bytes of a body; the rest waits in a temporary file

_django = WSGIMiddleware(cast("Any", django_application), workers=THREADS)


class Disconnected(Exception):
    """Whoever asked went away before all of the body was there."""


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer one connection. Headers spelt with an underscore are dropped on the way.

    WSGI writes `X_Forwarded_Proto` and `X-Forwarded-Proto` as the same variable, so a client could otherwise
    slip the first past a proxy that cleans only the second.
    """
    if scope["type"] == "lifespan":
        await _live(scope, receive, send)
        return
    if scope["type"] == "http":
        scope = {**scope, "headers": [(name, value) for name, value in scope["headers"] if b"_" not in name]}
        if scope["path"] in transport.PATHS:
            await transport.application(scope, receive, send)
            return
        await _answer(scope, receive, send)
        return
    await _django(scope, receive, send)


async def _answer(scope: Any, receive: Any, send: Any) -> None:
    try:
        async with _whole_body(scope, receive) as (whole, body):
            await _django(whole, body, send)
    except transport.Refused as refused:
        await transport.refuse(refused, send)
    except Disconnected:
        return


@asynccontextmanager
async def _whole_body(scope: Any, receive: Any) -> AsyncIterator[tuple[Any, Any]]:
    """Wait for all of the body: no slow sender keeps a thread, and no broken-off form is taken for a whole one.

    Gives the scope, in whose headers the length now stands as Django needs it, and where the body comes from. Raises
    Refused, Disconnected.
    """
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    if int(length) == 0 and b"transfer-encoding" not in headers:
        yield scope, receive
        return
    is_upload = int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE and not scope["path"].startswith("/api/")
    most = MAX_UPLOAD_BYTES + ROUND_UPLOAD if is_upload else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    seconds = UPLOAD_SECONDS if is_upload else BODY_SECONDS
    with SpooledTemporaryFile(max_size=IN_MEMORY) as body:
        _check_size(int(length), most)
        try:
            async with asyncio.timeout(seconds):
                size = await _fill(body, receive, most)
        except TimeoutError:
            words = f"The body wasn't there within {seconds} seconds: send it again."
            raise transport.Refused(408, "body_too_slow", words, connection="close") from None
        body.seek(0)

        async def again() -> Any:
            if body.closed or (size and body.tell() == size):
                return await receive()
            return {"type": "http.request", "body": body.read(IN_MEMORY), "more_body": body.tell() < size}

        others = [pair for pair in scope["headers"] if pair[0] not in (b"content-length", b"transfer-encoding")]
        yield {**scope, "headers": [*others, (b"content-length", str(size).encode())]}, again


async def _fill(body: IO[bytes], receive: Any, most: int) -> int:
    """Write the body as it comes; return how many bytes it has."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        body.write(message.get("body", b""))
        _check_size(body.tell(), most)
        if not message.get("more_body", False):
            return body.tell()


def _check_size(size: int, most: int) -> None:
    if size > most:
        words = f"A body has at most {most // 2**20} MB here: send it in parts."
        raise transport.Refused(413, "body_too_large", words, connection="close")


async def _live(scope: Any, receive: Any, send: Any) -> None:
    """Keep what answers MCP running from the first message, which asks to start, to the second, which asks to end."""
    await receive()
    async with transport.running() as served:
        scope["state"][transport.SERVED] = served
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})
