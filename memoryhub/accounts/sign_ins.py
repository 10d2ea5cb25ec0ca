"""Sign-ins and passwords.

A sign-in describes a login session for the list of sign-ins. Signing out deletes both.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as LoginSession
from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from memoryhub.accounts.user_agents import MAX_LENGTH, browser_label
from memoryhub.lib.database import db_retry
from memoryhub.models import Invitation, SignIn
from sessions_app.services.audit import By, record

VISIT_INTERVAL = timedelta(minutes=5)  # between updates of ``seen_at``
MAX_SIGN_INS = 100


@dataclass(frozen=True)
class ShownSignIn:
    """A sign-in with its browser's label. ``is_this_one``: of the current request."""

    sign_in: SignIn
    browser: str
    is_this_one: bool


def record_visit(user_id: int, key: str, *, browser: str, address: str, now: datetime) -> None:
    """Update the sign-in of a session, at most every five minutes. In between, this runs no query.

    Failed writes are logged and ignored, so that pages stay readable.
    """
    marker = f"seen-{sha256(key.encode()).hexdigest()}"
    if cache.get(marker) == user_id:
        return
    known = SignIn.objects.filter(session_key=key)
    seen_at = known.filter(user_id=user_id).values_list("seen_at", flat=True).first()
    if seen_at is None or now - seen_at >= VISIT_INTERVAL:
        values = {"browser": browser[:MAX_LENGTH], "address": address[:64], "seen_at": now}

        def write() -> None:
            if seen_at is not None:
                known.update(**values)
            elif LoginSession.objects.filter(session_key=key).exists():  # else it has just ended
                known.exclude(user_id=user_id).delete()
                new = SignIn(user_id=user_id, session_key=key, created_at=now, **values)
                SignIn.objects.bulk_create([new], ignore_conflicts=True)

        db_retry.try_write(write, "a sign-in")
    cache.set(marker, user_id, VISIT_INTERVAL.total_seconds())


def follow_key(old: str, new: str | None) -> None:
    """Update the session key of a sign-in, or delete the sign-in if ``new`` is None.

    Runs one query if there is no such sign-in.
    """
    listed = SignIn.objects.filter(session_key=old)
    if not listed.exists():  # a client can send any key
        return
    db_retry.try_write(lambda: listed.update(session_key=new) if new else listed.delete(), "a session's new key")


def sign_ins_of(user: User, *, this: str | None, now: datetime) -> list[ShownSignIn]:
    """Return a user's sign-ins: the current one, then by last visit."""
    live = LoginSession.objects.filter(session_key=OuterRef("session_key"), expire_date__gt=now)
    listed = SignIn.objects.filter(Exists(live), user=user).order_by("-seen_at", "-id")[:MAX_SIGN_INS]
    shown = [ShownSignIn(row, browser_label(row.browser), row.session_key == this) for row in listed]
    return sorted(shown, key=lambda one: not one.is_this_one)


@transaction.atomic
def end_sign_in(sign_in: SignIn, *, by: By) -> None:
    """End the session of a sign-in."""
    _end([sign_in.session_key])
    words = f"{sign_in.user.username} was signed out in one browser"
    record(by, "account.signed_out", "user", sign_in.user_id, words)


@transaction.atomic
def sign_out_elsewhere(user: User, *, keep: str | None, by: By) -> int:
    """End all other sessions of a user; return their number."""
    count = end_sessions(user, keep=keep)
    words = f"{user.username} was signed out everywhere else"
    record(by, "account.signed_out", "user", user.pk, words, detail={"count": count})
    return count


def end_sessions(user: User, *, keep: str | None = None) -> int:
    """End all sessions of a user, even without a sign-in, in the caller's transaction; return their number."""
    listed = SignIn.objects.filter(user=user).values_list("session_key", flat=True)
    keys = {*listed, *_unlisted_keys(user)} - {keep}
    return _end(keys)


def _unlisted_keys(user: User) -> list[str]:
    unlisted = LoginSession.objects.exclude(session_key__in=SignIn.objects.values("session_key"))
    return [one.session_key for one in unlisted if one.get_decoded().get("_auth_user_id") == str(user.pk)]


def _end(keys: Collection[str]) -> int:
    ended, _ = LoginSession.objects.filter(session_key__in=keys).delete()
    SignIn.objects.filter(session_key__in=keys).delete()
    return ended


@transaction.atomic
def change_password(user: User, password: str, *, keep: str | None, by: By) -> None:
    """Set a user's password, end their sessions except ``keep``, and revoke their reset links."""
    user.set_password(password)
    user.save(update_fields=["password"])
    end_sessions(user, keep=keep)
    open_reset_links(user).update(revoked_at=by.at)
    words = f"{user.username} changed their password and was signed out everywhere else"
    record(by, "account.password_changed", "user", user.pk, words)


def open_reset_links(user: User) -> QuerySet[Invitation]:
    """Return a user's reset links that aren't used or revoked."""
    return Invitation.objects.filter(user=user, used_at=None, revoked_at=None)


def delete_ended(now: datetime) -> None:
    """Delete expired sessions, and sign-ins without a session."""
    LoginSession.objects.filter(expire_date__lt=now).delete()
    live = LoginSession.objects.filter(session_key=OuterRef("session_key"))
    SignIn.objects.filter(~Exists(live)).delete()
