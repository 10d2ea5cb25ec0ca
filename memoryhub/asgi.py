"""The ASGI application of `manage.py serve`: Django as WSGI in a thread pool, MCP with its OAuth, and streams.

Django as WSGI is several times faster than as ASGI. MCP and the streams of open pages need ASGI's lifespan.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import DatabaseError, connection

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
django_application = get_wsgi_application()

# isort: split
from memoryhub.lib.http.proxy_header import PEER, PERSON, take_person  # noqa: E402
from memoryhub.lib.http.request_ids import HEADER, identified  # noqa: E402
from memoryhub.lib.http.threaded_wsgi import ThreadedWSGI  # noqa: E402
from memoryhub.lib.metrics import count_request  # noqa: E402
from memoryhub.lib.traces import Traced, shut_down, traced_request  # noqa: E402
from memoryhub.live import streams  # noqa: E402
from memoryhub.live import transport as live  # noqa: E402
from memoryhub.mcp import oauth, transport  # noqa: E402
from memoryhub.sync.forms import MAX_UPLOAD_BYTES  # noqa: E402
from sessions_app.services.secret_key import DifferentKey, require_known_key  # noqa: E402

THREADS = 10  # SQLite has one writer; more threads would only wait
BODY_SECONDS, UPLOAD_SECONDS = 60, 900  # to receive a body, or one with a file
FORM_BYTES = 2**20  # bytes of a form besides its file
ID_HEADER = HEADER.lower().encode()
IN_MEMORY = 2**20  # bytes of a body; larger ones go to a temporary file

# By path: what is served without Django's middleware.
_SERVED_HERE = dict.fromkeys(transport.PATHS, transport.application) | {streams.PATH: live.application}
_django = ThreadedWSGI(django_application, threads=THREADS)


class Disconnected(Exception):
    """The client disconnected before the body was complete."""


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Handle a connection. Header names with an underscore are dropped.

    WSGI maps `X_Forwarded_Proto` and `X-Forwarded-Proto` to the same variable, so a client could send the first one
    past a proxy that removes only the second.
    """
    if scope["type"] == "lifespan":
        await _lifespan(scope, receive, send)
        return
    if scope["type"] == "http":
        plain = [(name, value) for name, value in scope["headers"] if b"_" not in name]
        headers, person = take_person(plain, scope.get("state", {}).get(PEER, ""))
        scope = {**scope, "headers": headers, PERSON: person}
        given = dict(scope["headers"]).get(ID_HEADER, b"").decode("latin-1")
        with identified(given) as request_id, _traced(scope) as span:
            send = _with_id(send, request_id.encode())
            await _answer(scope, receive, _ending(span, scope, send) if span else send)
        return
    await _django(scope, receive, send)


def _with_id(send: Any, request_id: bytes) -> Any:
    """Wrap ``send`` so that responses have the id, also those of MCP and of requests refused before Django."""

    async def send_with_id(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = [pair for pair in message["headers"] if pair[0].lower() != ID_HEADER]
            message = {**message, "headers": [*headers, (ID_HEADER, request_id)]}
        await send(message)

    return send_with_id


def _traced(scope: Any) -> AbstractContextManager[Traced | None]:
    if not settings.MEMORYHUB_TRACES:
        return nullcontext()
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    return traced_request(scope["method"], headers, scope.get("state", {}).get(PEER, ""))


def _ending(span: Traced, scope: Any, send: Any) -> Any:
    """Wrap ``send`` so that the span ends when the response begins. Those of open pages have no end."""
    path = scope["path"]
    is_own = path in _SERVED_HERE or path in oauth.ENDPOINTS  # middleware names the others

    async def send_and_end(message: Any) -> None:
        if message["type"] == "http.response.start":
            span.answer(message["status"], path.strip("/") if is_own else None)
            span.end()
        await send(message)

    return send_and_end


async def _answer(scope: Any, receive: Any, send: Any) -> None:
    if served := _SERVED_HERE.get(scope["path"]):
        await served(scope, receive, _counted(scope, send) if settings.MEMORYHUB_METRICS else send)
    else:
        await _handle(oauth.application if scope["path"] in oauth.ENDPOINTS else _django, scope, receive, send)


def _counted(scope: Any, send: Any) -> Any:
    """Wrap ``send`` so that the request is counted for /metrics, as middleware counts those to Django."""
    began = time.perf_counter()

    async def send_counted(message: Any) -> None:
        if message["type"] == "http.response.start":
            count_request(scope["path"].strip("/"), scope["method"], message["status"], time.perf_counter() - began)
        await send(message)

    return send_counted


async def _handle(served: Any, scope: Any, receive: Any, send: Any) -> None:
    try:
        async with _complete_body(scope, receive) as (whole, body):
            await served(whole, body, send)
    except transport.Refused as refused:
        await transport.refuse(refused, send)
    except Disconnected:
        return


@asynccontextmanager
async def _complete_body(scope: Any, receive: Any) -> AsyncIterator[tuple[Any, Any]]:
    """Receive the complete body, so that slow clients don't occupy threads and truncated forms aren't processed.

    Yields the scope with a Content-Length header, and a ``receive`` callable. Raises Refused, Disconnected.
    """
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    if int(length) == 0 and b"transfer-encoding" not in headers:
        yield scope, receive
        return
    is_upload = int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE and not scope["path"].startswith("/api/")
    most = MAX_UPLOAD_BYTES + FORM_BYTES if is_upload else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    most = oauth.MAX_BODY if scope["path"] in oauth.ENDPOINTS else most
    seconds = UPLOAD_SECONDS if is_upload else BODY_SECONDS
    with SpooledTemporaryFile(max_size=IN_MEMORY) as body:
        _check_size(int(length), most)
        try:
            async with asyncio.timeout(seconds):
                size = await _receive_body(body, receive, most)
        except TimeoutError:
            words = f"The body wasn't received within {seconds} seconds. Send it again."
            raise transport.Refused(408, "body_too_slow", words, connection="close") from None
        body.seek(0)

        async def again() -> Any:
            if body.closed or (size and body.tell() == size):
                return await receive()
            return {"type": "http.request", "body": body.read(IN_MEMORY), "more_body": body.tell() < size}

        others = [pair for pair in scope["headers"] if pair[0] not in (b"content-length", b"transfer-encoding")]
        yield {**scope, "headers": [*others, (b"content-length", str(size).encode())]}, again


async def _receive_body(body: IO[bytes], receive: Any, most: int) -> int:
    """Write the body to a file; return its number of bytes."""
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
        size_shown = f"{most // 2**20} MB" if most >= 2**20 else f"{most // 2**10} KB"
        words = f"The body is larger than {size_shown}. Send it in parts."
        raise transport.Refused(413, "body_too_large", words, connection="close")


async def _lifespan(scope: Any, receive: Any, send: Any) -> None:
    """Run MCP's session manager, and read for streams, from startup to shutdown."""
    await receive()
    try:
        await asyncio.to_thread(_check_key)
    except DifferentKey as error:
        await send({"type": "lifespan.startup.failed", "message": error.message})
        return
    async with transport.running() as served, streams.open_streams.followed(live.read):
        scope["state"][transport.SERVED] = served
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await asyncio.to_thread(shut_down)
    await send({"type": "lifespan.shutdown.complete"})


def _check_key() -> None:
    """Raise DifferentKey if the database belongs to another hub. If it is unavailable, requests say so."""
    with suppress(DatabaseError):
        require_known_key()
    connection.close()
