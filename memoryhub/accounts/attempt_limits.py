"""Limits on failed attempts to sign in or to confirm a password, shared by all processes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare, get_random_string, salted_hmac

from memoryhub.lib.database import db_retry
from memoryhub.lib.http.networks import network_of
from memoryhub.models import FailedAttempts

PERIOD = timedelta(minutes=1)  # from the first attempt
WRONG_CLOCK = timedelta(minutes=5)  # a period that ends later than this after its length was set by a wrong clock
MAX_PER_ADDRESS = 10
MAX_PER_NAME = 100  # from many addresses
MAX_PER_KNOWN_BROWSER = 10
MAX_PER_ACCOUNT = 10  # to confirm a signed-in user's password
BROWSER_COOKIE = "browser"
COOKIE_SECONDS = 365 * 86_400


def sign_in_limits(request: HttpRequest | None, username: str) -> dict[str, int]:
    """Return the limits of an attempt to sign in, by key.

    A browser in which this user has signed in before has its own limit, so that others can't lock the user out.
    """
    if request is None:
        return {f"name {username}": MAX_PER_NAME}
    browser = request.COOKIES.get(BROWSER_COOKIE, "")
    user = User.objects.filter(username=username).first() if browser else None
    if user is not None and is_known_browser(user, browser):
        return {f"browser {browser}": MAX_PER_KNOWN_BROWSER}
    address = network_of(request.META.get("REMOTE_ADDR", ""))
    return {f"address {address}": MAX_PER_ADDRESS, f"name {username}": MAX_PER_NAME}


@db_retry.retried
@transaction.atomic
def count_attempt(limits: Mapping[str, int], now: datetime, period: timedelta = PERIOD) -> bool:
    """Count an attempt as failed under each key; return False, and count nothing, if a limit is reached.

    A key always has the same ``period``, which begins with its first attempt.
    This comes before the password is checked, so that concurrent attempts are limited, too.
    """
    by_hash = {_hash(key): limit for key, limit in limits.items()}
    for key in sorted(by_hash):
        FailedAttempts.objects.get_or_create(key=key, defaults={"expires_at": now + period})
    rows = FailedAttempts.objects.filter(key__in=by_hash)
    locked = list(rows.select_for_update().order_by("key"))
    latest = now + period + WRONG_CLOCK
    rows.filter(Q(expires_at__lte=now) | Q(expires_at__gt=latest)).update(count=0, expires_at=now + period)
    if any(now < row.expires_at <= latest and row.count >= by_hash[row.key] for row in locked):
        return False
    rows.update(count=F("count") + 1)
    return True


@db_retry.retried
def uncount_attempt(limits: Mapping[str, int]) -> None:
    """Uncount an attempt whose password was correct."""
    keys = [_hash(key) for key in limits]
    FailedAttempts.objects.filter(key__in=keys, count__gt=0).update(count=F("count") - 1)


def delete_expired_attempts(now: datetime) -> None:
    FailedAttempts.objects.filter(expires_at__lte=now).delete()


def remember_browser(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Set the cookie of a known browser, unless it is already set for this user."""
    if is_known_browser(user, request.COOKIES.get(BROWSER_COOKIE, "")):
        return
    name = get_random_string(22)
    value, secure = f"{name}.{_signature(user, name)}", request.is_secure()
    response.set_cookie(
        BROWSER_COOKIE, value, max_age=COOKIE_SECONDS, samesite="Lax", secure=secure, httponly=True
    )  # fmt: skip


def is_known_browser(user: User, cookie: str) -> bool:
    """Return whether the cookie was set for this user since the last change of their password."""
    name, _, signature = cookie.partition(".")
    return bool(signature) and constant_time_compare(signature, _signature(user, name))


def _signature(user: User, name: str) -> str:
    value = f"{user.pk} {user.password} {name}"
    return salted_hmac("memoryhub.known_browser", value, algorithm="sha256").hexdigest()


def _hash(key: str) -> str:
    return sha256(key.encode()).hexdigest()
