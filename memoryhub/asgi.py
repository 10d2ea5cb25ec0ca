"""What `manage.py serve` runs: Django as WSGI in a thread pool behind ASGI, several times faster than as ASGI."""

from __future__ import annotations

from typing import Any, cast

from a2wsgi import WSGIMiddleware

from memoryhub.wsgi import application as django_application

THREADS = 10  # pages are short and SQLite has one writer; more threads would only wait

_django = WSGIMiddleware(cast("Any", django_application), workers=THREADS)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer one connection. Headers spelt with an underscore are dropped on the way.

    WSGI writes `X_Forwarded_Proto` and `X-Forwarded-Proto` as the same variable, so a client could otherwise
    slip the first past a proxy that cleans only the second.
    """
    if scope["type"] == "http":
        scope = {**scope, "headers": [(name, value) for name, value in scope["headers"] if b"_" not in name]}
    await _django(scope, receive, send)
