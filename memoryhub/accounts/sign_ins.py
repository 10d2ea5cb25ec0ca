"""Where people are signed in, how that ends, and their passwords.

A login session is the browser's right to be somebody; a sign-in is our note of it. What ends is the session.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as LoginSession
from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from memoryhub.accounts.user_agents import LONGEST, browser_words
from memoryhub.lib import db_retry
from memoryhub.models import Invitation, SignIn
from sessions_app.services.audit import By, record

NOTED_EVERY = timedelta(minutes=5)  # how exactly it is known when somebody was there last
MOST_TRIES, TRIES_SECONDS = 10, 60
MOST_SHOWN = 100


@dataclass(frozen=True)
class ShownSignIn:
    """A sign-in in words. ``is_this_one``: of the browser that asks."""

    sign_in: SignIn
    browser: str
    is_this_one: bool


def record_visit(user_id: int, key: str, *, browser: str, address: str, now: datetime) -> None:
    """Write down that somebody was there with a session, at most every five minutes; else it costs no query.

    A database that can't be written to keeps nobody from reading.
    """
    marker = f"seen-{sha256(key.encode()).hexdigest()}"
    if cache.get(marker) == user_id:
        return
    known = SignIn.objects.filter(session_key=key)
    seen_at = known.filter(user_id=user_id).values_list("seen_at", flat=True).first()
    if seen_at is None or now - seen_at >= NOTED_EVERY:
        values = {"browser": browser[:LONGEST], "address": address[:64], "seen_at": now}

        def write() -> None:
            if seen_at is not None:
                known.update(**values)
            elif LoginSession.objects.filter(session_key=key).exists():  # else it was ended a moment ago
                known.exclude(user_id=user_id).delete()
                new = SignIn(user_id=user_id, session_key=key, created_at=now, **values)
                SignIn.objects.bulk_create([new], ignore_conflicts=True)

        db_retry.try_write(write, "where somebody is signed in")
    cache.set(marker, user_id, NOTED_EVERY.total_seconds())


def follow_key(old: str, new: str | None) -> None:
    """Keep a sign-in whose session got another key; forget the one whose session is gone (``new`` None).

    One query where there is none.
    """
    noted = SignIn.objects.filter(session_key=old)
    if not noted.exists():  # a browser may bring any key
        return
    db_retry.try_write(lambda: noted.update(session_key=new) if new else noted.delete(), "a session's new key")


def sign_ins_of(user: User, *, this: str | None, now: datetime) -> list[ShownSignIn]:
    """Return where a person is signed in, this browser first, then by when they were there last."""
    living = LoginSession.objects.filter(session_key=OuterRef("session_key"), expire_date__gt=now)
    noted = SignIn.objects.filter(Exists(living), user=user).order_by("-seen_at", "-id")[:MOST_SHOWN]
    shown = [ShownSignIn(row, browser_words(row.browser), row.session_key == this) for row in noted]
    return sorted(shown, key=lambda one: not one.is_this_one)


@transaction.atomic
def end_sign_in(sign_in: SignIn, *, by: By) -> None:
    """End one session at once; its browser is signed out with its next request."""
    _end([sign_in.session_key])
    words = f"{sign_in.user.username} was signed out in one browser"
    record(by, "account.signed_out", "user", sign_in.user_id, words)


@transaction.atomic
def sign_out_elsewhere(user: User, *, keep: str | None, by: By) -> int:
    """End all sessions of a person but one; return how many there were."""
    count = end_sessions(user, keep=keep)
    words = f"{user.username} was signed out everywhere else"
    record(by, "account.signed_out", "user", user.pk, words, detail={"count": count})
    return count


def end_sessions(user: User, *, keep: str | None = None) -> int:
    """End all sessions of a person, the ones that were never noted too; return how many. Part of a transaction."""
    noted = SignIn.objects.filter(user=user).values_list("session_key", flat=True)
    keys = {*noted, *_unnoted_keys(user)} - {keep}
    return _end(keys)


def _unnoted_keys(user: User) -> list[str]:
    unnoted = LoginSession.objects.exclude(session_key__in=SignIn.objects.values("session_key"))
    return [one.session_key for one in unnoted if one.get_decoded().get("_auth_user_id") == str(user.pk)]


def _end(keys: Collection[str]) -> int:
    ended, _ = LoginSession.objects.filter(session_key__in=keys).delete()
    SignIn.objects.filter(session_key__in=keys).delete()
    return ended


@transaction.atomic
def change_password(user: User, password: str, *, keep: str | None, by: By) -> None:
    """Give a person another password, end their sessions but ``keep`` and the links that would change it again."""
    user.set_password(password)
    user.save(update_fields=["password"])
    end_sessions(user, keep=keep)
    open_links_to(user).update(revoked_at=by.at)
    words = f"{user.username} changed their password, and was signed out everywhere else"
    record(by, "account.password_changed", "user", user.pk, words)


def open_links_to(user: User) -> QuerySet[Invitation]:
    """Return the links to a new password of a person that nobody used or revoked."""
    return Invitation.objects.filter(user=user, used_at=None, revoked_at=None)


def forget_ended(now: datetime) -> None:
    """Remove sessions whose time is over, and the notes of sessions that are gone."""
    LoginSession.objects.filter(expire_date__lt=now).delete()
    living = LoginSession.objects.filter(session_key=OuterRef("session_key"))
    SignIn.objects.filter(~Exists(living)).delete()


def is_slowed(tried: Collection[str]) -> bool:
    """Tell whether there were ten wrong tries within a minute for any of these (a name, an address)."""
    return any(cache.get(_counter(one), 0) >= MOST_TRIES for one in tried)


def count_try(tried: Collection[str]) -> None:
    """Count a try as wrong before it is made: many at once get no more answers than one by one.

    A minute after the first one they are forgotten.
    """
    for one in tried:
        cache.add(_counter(one), 0, TRIES_SECONDS)
        with suppress(ValueError):  # its minute ended this very moment
            cache.incr(_counter(one))


def count_as_right(tried: Collection[str]) -> None:
    """Take back a counted try, whose password was right."""
    for one in tried:
        with suppress(ValueError):
            cache.decr(_counter(one))


def _counter(one: str) -> str:
    return f"login-{sha256(one.encode()).hexdigest()}"
