"""Every signed-in request says where somebody is signed in; one that no longer is hears so plainly."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.utils import timezone
from django_htmx.http import HttpResponseClientRedirect

from memoryhub.accounts.sign_ins import follow_key, record_visit

GetResponse = Callable[[HttpRequest], HttpResponse]
ENDED = "&ended=1"  # told to the login page, whose browser came with a session that is no more


def follow_sign_ins(get_response: GetResponse) -> GetResponse:
    """Keep the list of sign-ins true: seen, under another key, gone; send open pages of a gone one to the login."""

    def middleware(request: HttpRequest) -> HttpResponse:
        brought = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        response = get_response(request)
        key = request.session.session_key
        is_signed_in = request.user.is_authenticated
        if brought and brought != key:
            follow_key(brought, key if is_signed_in else None)
        if request.user.pk is not None and key:
            agent, address = request.META.get("HTTP_USER_AGENT", ""), request.META.get("REMOTE_ADDR", "")
            record_visit(request.user.pk, key, browser=agent, address=address, now=timezone.now())
        return response if is_signed_in else _to_login(request, response, had_session=bool(brought))

    return middleware


def _to_login(request: HttpRequest, response: HttpResponse, *, had_session: bool) -> HttpResponse:
    """Let a whole page go to the login, not the part of it that asked; say where a session has ended."""
    target = response.headers.get("Location", "")
    login, _, query = target.partition("?")
    if response.status_code != 302 or login != resolve_url(settings.LOGIN_URL) or "next=" not in query:
        return response
    htmx = getattr(request, "htmx", None)
    if htmx:
        back = urlencode({"next": htmx.current_url_abs_path or "/"})
        return HttpResponseClientRedirect(f"{login}?{back}{ENDED}")
    if had_session:
        response.headers["Location"] = target + ENDED
    return response
