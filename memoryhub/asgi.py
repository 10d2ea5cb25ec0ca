"""What `manage.py serve` runs: Django as WSGI in a thread pool behind ASGI, several times faster than as ASGI.

MCP stands beside it, as ASGI: it answers /mcp and needs the lifespan that uvicorn keeps.
"""

from __future__ import annotations

from typing import Any, cast

from a2wsgi import WSGIMiddleware

from memoryhub.wsgi import application as django_application

# isort: split
from memoryhub.mcp import door  # models can be imported once Django is set up

THREADS = 10  # pages are short and SQLite has one writer; more threads would only wait

_django = WSGIMiddleware(cast("Any", django_application), workers=THREADS)


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
    await _django(scope, receive, send)


async def _live(scope: Any, receive: Any, send: Any) -> None:
    """Keep what answers MCP running from the first message, which asks to start, to the second, which asks to end."""
    await receive()
    async with door.running() as served:
        scope["state"][door.SERVED] = served
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})
