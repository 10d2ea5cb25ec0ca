"""What `manage.py serve` runs: Django as WSGI in a thread pool behind ASGI, several times faster than as ASGI.

MCP stands beside it, as ASGI: it answers /mcp and needs the lifespan that uvicorn keeps.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from a2wsgi import WSGIMiddleware
from django.conf import settings

from memoryhub.wsgi import application as django_application

# isort: split
from memoryhub.mcp import door  # models can be imported once Django is set up

THREADS = 10  # pages are short and SQLite has one writer; more threads would only wait
BODY_SECONDS = 60  # in which a body has to be there

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
        if scope["path"] in door.PATHS:
            await door.application(scope, receive, send)
            return
        try:
            scope, receive = await _with_whole_body(scope, receive)
        except door.Refused as refused:
            await door.refuse(refused, send)
            return
        except Disconnected:
            return
    await _django(scope, receive, send)


async def _with_whole_body(scope: Any, receive: Any) -> tuple[Any, Any]:
    """Wait for all of the body: no slow sender keeps a thread, and no broken-off form is taken for a whole one.

    Its length then stands in the headers, which Django needs, however it was sent. Uploads of files may be larger
    and are read as they come. Raises Refused, Disconnected.
    """
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    is_chunked = b"transfer-encoding" in headers
    if not is_chunked and not 0 < int(length) <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        return scope, receive
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _read(receive)
    except TimeoutError:
        words = f"The body wasn't there within {BODY_SECONDS} seconds: send it again."
        raise door.Refused(408, "body_too_slow", words, connection="close") from None
    others = [pair for pair in scope["headers"] if pair[0] not in (b"content-length", b"transfer-encoding")]
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Any:
        return messages.pop() if messages else await receive()

    return {**scope, "headers": [*others, (b"content-length", str(len(body)).encode())]}, again


async def _read(receive: Any) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        body += message.get("body", b"")
        if len(body) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20
            words = f"A body whose length isn't told beforehand has at most {most} MB."
            raise door.Refused(413, "body_too_large", words, connection="close")
        if not message.get("more_body", False):
            return bytes(body)


async def _live(scope: Any, receive: Any, send: Any) -> None:
    """Keep what answers MCP running from the first message, which asks to start, to the second, which asks to end."""
    await receive()
    async with door.running() as served:
        scope["state"][door.SERVED] = served
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})
