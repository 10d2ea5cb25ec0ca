"""The ASGI application that opens a stream for a signed-in person's browser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, get_user
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.http.cookie import parse_cookie

from memoryhub.accounts.second_factor import lacks_required_factor
from memoryhub.lib.http.proxy_header import PERSON
from memoryhub.live.reading import read_news
from memoryhub.live.streams import News, TooManyStreams, open_streams
from memoryhub.mcp.calls import in_thread
from memoryhub.mcp.transport import Refused, check_origin, read_headers, refuse


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Respond with a stream, or with a problem document: the page polls then."""
    try:
        headers = read_headers(scope)
        check_origin(headers, scope.get("scheme", "http"))
        if scope["method"] != "GET":
            raise Refused(405, "method_not_allowed", "Use GET.", allow="GET")
        if not open_streams.is_followed:
            raise Refused(503, "not_running", "Streams need an ASGI server with lifespan support.")
        session, person = await in_thread(lambda: _signed_in(headers, scope.get(PERSON, "")))
        await open_streams.serve(session, person, receive, send)
    except TooManyStreams:
        await refuse(Refused(429, "too_many_streams", "Too many streams are open.", **{"retry-after": "60"}), send)
    except Refused as refused:
        await refuse(refused, send)


async def read(known: frozenset[int] | None, people: Mapping[str, int], due: Any) -> News:
    """Read what to tell, in one of MCP's threads."""
    return await in_thread(lambda: read_news(known, people, due))


def _signed_in(headers: Mapping[str, str], named: str) -> tuple[str, int]:
    """Return the login session and the person of a request, with the checks of Django's middleware. Raises Refused.

    ``named``: whom an authenticating proxy names, or "".
    """
    key = parse_cookie(headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME, "")
    request = HttpRequest()
    request.session = SessionStore(key)
    user = get_user(request) if key else None
    if not isinstance(user, User) or not request.session.session_key or not _may_use(request.session, user, named):
        raise Refused(401, "not_signed_in", "Sign in first.")
    if lacks_required_factor(user, request.session):
        raise Refused(403, "second_factor_needed", "Set up two-factor authentication first.")
    return request.session.session_key, user.pk


def _may_use(session: SessionBase, user: User, named: str) -> bool:
    """Return whether a login session counts: of the person whom the proxy names, or not made by the proxy."""
    return user.username == named if named else session[BACKEND_SESSION_KEY] != settings.PROXY_BACKEND
