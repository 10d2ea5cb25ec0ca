"""Middleware that keeps the list of sign-ins up to date, and requires a second factor."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode, urlsplit, urlunsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

from memoryhub.accounts.attempt_limits import remember_browser
from memoryhub.accounts.second_factor import lacks_required_factor
from memoryhub.accounts.sign_ins import follow_key, record_visit

ALWAYS_OPEN = ("second-factor", "logout", "login", "login-code", "invitation", "health", "metrics")
GetResponse = Callable[[HttpRequest], HttpResponse]
ENDED = "&ended=1"  # tells the login page that the session has ended


def follow_sign_ins(get_response: GetResponse) -> GetResponse:
    """Record visits, changed and ended sessions, mark known browsers, and redirect open pages to the login page."""

    def middleware(request: HttpRequest) -> HttpResponse:
        old_key = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        response = get_response(request)
        key = request.session.session_key
        is_signed_in = request.user.is_authenticated
        if old_key and old_key != key:
            follow_key(old_key, key if is_signed_in else None)
        if request.user.pk is not None and key:
            browser, address = request.META.get("HTTP_USER_AGENT", ""), request.META.get("REMOTE_ADDR", "")
            record_visit(request.user.pk, key, browser=browser, address=address, now=timezone.now())
        if isinstance(request.user, User):
            remember_browser(request, response, request.user)
        return response if is_signed_in else _to_login(request, response, had_session=bool(old_key))

    return middleware


def _to_login(request: HttpRequest, response: HttpResponse, *, had_session: bool) -> HttpResponse:
    """Redirect the whole page instead of an htmx fragment, and mark ended sessions."""
    target = response.headers.get("Location", "")
    login, _, query = target.partition("?")
    if response.status_code != 302 or login != resolve_url(settings.LOGIN_URL) or "next=" not in query:
        return response
    htmx = getattr(request, "htmx", None)
    if htmx:
        back = urlencode({"next": htmx.current_url_abs_path or "/"})
        return HttpResponseClientRedirect(f"{login}?{back}{ENDED}")
    if request.method == "POST" and (page := _sender(request)):  # its own address may not be a page
        response.headers["Location"] = f"{login}?{urlencode({'next': page})}{ENDED}"
    elif had_session or request.method == "POST":  # somebody was at work on a page
        response.headers["Location"] = target + ENDED
    return response


def _sender(request: HttpRequest) -> str:
    """Return the path of the hub's page that sent a request; empty if the browser doesn't say."""
    page = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(page, {request.get_host()}):
        return ""
    parts = urlsplit(page)
    path = urlunsplit(("", "", parts.path, parts.query, ""))
    return path if url_has_allowed_host_and_scheme(path, None) else ""  # not //another.host/


class require_second_factor:  # noqa: N801 (named like a function, as settings list it)
    """With MEMORYHUB_REQUIRE_SECOND_FACTOR, lead people without a second factor to its page."""

    def __init__(self, get_response: GetResponse) -> None:
        if not settings.MEMORYHUB_REQUIRE_SECOND_FACTOR:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_view: object) -> HttpResponse | None:
        name = request.resolver_match.view_name if request.resolver_match else ""
        user = request.user
        if not isinstance(user, User) or name in ALWAYS_OPEN or not lacks_required_factor(user, request.session):
            return None
        url = resolve_url("second-factor")
        return HttpResponseClientRedirect(url) if getattr(request, "htmx", None) else redirect(url)
