"""Sign-in behind an authenticating proxy, which names the person. Headers are checked by memoryhub.asgi."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.backends import RemoteUserBackend
from django.contrib.auth.middleware import RemoteUserMiddleware
from django.contrib.auth.models import User
from django.core.exceptions import MiddlewareNotUsed, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from memoryhub.accounts.people import usernames_like
from memoryhub.lib.http.proxy_header import PERSON
from sessions_app.services.audit import Actor, By, record


class ProxyBackend(RemoteUserBackend):
    """Finds the person by name, and creates unknown ones only with MEMORYHUB_PROXY_CREATES_PEOPLE."""

    @property
    def create_unknown_user(self) -> bool:  # type: ignore[override]
        return bool(settings.MEMORYHUB_PROXY_CREATES_PEOPLE)

    @transaction.atomic
    def authenticate(self, request: HttpRequest | None, remote_user: str) -> User | None:  # type: ignore[override]
        try:
            User._meta.get_field("username").clean(remote_user, None)
        except ValidationError:
            return None
        found: User | None = super().authenticate(request, remote_user)
        return found

    def configure_user(self, request: HttpRequest, user: User, created: bool = True) -> User:  # type: ignore[override]  # noqa: ARG002, FBT001, FBT002
        if created:
            user.set_unusable_password()
            user.save(update_fields=["password"])
            words = f"{user.username} was signed in by the proxy and got an account"
            record(By(Actor("person", user.username), timezone.now()), "account.created", "user", user.pk, words)
        return user


class SignInByProxy(RemoteUserMiddleware):
    """Signs in the person whom the proxy names, and nobody else while it names one."""

    async_capable = False  # type: ignore[assignment]

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if not settings.MEMORYHUB_PROXY_HEADER:
            raise MiddlewareNotUsed
        super().__init__(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.META.pop(self.header, None)  # of a WSGI server
        given = person_named_by_proxy(request)
        if name := _account_name(request, given):
            request.META[self.header] = name
        self.process_request(request)
        if given and request.user.is_authenticated and request.user.get_username() != name:
            logout(request)
        return self.get_response(request)  # type: ignore[return-value]

    def process_view(self, request: HttpRequest, view: object, *_arguments: object) -> HttpResponse | None:
        name = person_named_by_proxy(request)
        if not name or request.user.is_authenticated or not getattr(view, "login_required", True):
            return None
        return render(request, "accounts/unknown_person.html", {"name": name}, status=403)


def _account_name(request: HttpRequest, given: str) -> str:
    """Return the user name that the proxy means, also of nobody yet; "" if several accounts could be meant."""
    if not given or (request.user.is_authenticated and request.user.get_username() == given):
        return given
    found = usernames_like(given)
    return found[0] if len(found) == 1 else "" if found else given


def person_named_by_proxy(request: HttpRequest) -> str:
    """Return the name that the proxy gave, or ""."""
    return str(request.META.get("asgi.scope", {}).get(PERSON, ""))
