"""The second factor: codes of an authenticator app (TOTP, RFC 6238), and recovery codes.

Built on cryptography's TOTP, because the rest is ours already: sign-in pages, limits of attempts, sessions, reset
links and the audit log.
"""

from __future__ import annotations

import base64
import secrets
from datetime import datetime

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.db import transaction
from django.utils.crypto import constant_time_compare, salted_hmac

from memoryhub.account_models import Passkey, RecoveryCode, SecondFactor
from memoryhub.accounts.people import refuse_oneself
from memoryhub.accounts.sign_ins import end_sessions
from memoryhub.lib.database.encrypted_text import decrypt_text, encrypt_text
from sessions_app.services.audit import By, record

DIGITS, STEP_SECONDS = 6, 30
TOLERANCE = 1  # steps before and after the present one, for clocks that differ
SECRET_BYTES = 20
CODE_COUNT, CODE_LENGTH = 10, 10
ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # without letters that look like digits
ISSUER = "MemoryHub"
BY_PASSKEY = "by_passkey"  # key in the session: the passkey that began it


def new_secret() -> str:
    """Return a new secret in base32, as authenticator apps take it."""
    return base64.b32encode(secrets.token_bytes(SECRET_BYTES)).decode()


def provisioning_uri(secret: str, username: str) -> str:
    """Return the address that the QR code contains."""
    return _totp(secret).get_provisioning_uri(username, ISSUER)


def matching_step(secret: str, code: str, now: datetime) -> int | None:
    """Return the step of the code of an app, or None if it is wrong or too old."""
    present = int(now.timestamp()) // STEP_SECONDS
    found = None
    for step in range(present - TOLERANCE, present + TOLERANCE + 1):
        if constant_time_compare(_totp(secret).generate(step * STEP_SECONDS).decode(), code):
            found = step
    return found


def has_second_factor(user: User) -> bool:
    return SecondFactor.objects.filter(user=user).exists()


def lacks_required_factor(user: User, session: SessionBase) -> bool:
    """Return whether a person has to set up a second factor first.

    Those without a password sign in elsewhere, and the passkey that began a session counts as two factors.
    """
    if not settings.MEMORYHUB_REQUIRE_SECOND_FACTOR or not user.has_usable_password() or has_second_factor(user):
        return False
    return not Passkey.objects.filter(pk=session.get(BY_PASSKEY, 0), user=user).exists()


@transaction.atomic
def turn_on(user: User, secret: str, step: int, *, keep: str | None, by: By) -> list[str]:
    """Store a secret whose code was checked, and sign out all other browsers; return new recovery codes.

    ``step``: of that code, which doesn't work again. ``keep``: the key of this browser's session.
    """
    values = {"secret": encrypt_text(secret, context=_context(user)), "last_step": step, "created_at": by.at}
    SecondFactor.objects.update_or_create(user=user, defaults=values)
    end_sessions(user, keep=keep)
    words = f"{user.username} turned two-factor authentication on and was signed out everywhere else"
    record(by, "account.second_factor_on", "user", user.pk, words)
    return _replace_codes(user)


@transaction.atomic
def turn_off(user: User, *, by: By) -> bool:
    """Remove one's own second factor; return whether there was one."""
    words = f"{user.username} turned two-factor authentication off"
    return _remove(user, "account.second_factor_off", words, by)


@transaction.atomic
def reset(user: User, *, by: By) -> bool:
    """Remove somebody else's second factor; return whether there was one. Raises Refused."""
    refuse_oneself(user, by.actor)
    words = f"The two-factor authentication of {user.username} was reset"
    return _remove(user, "account.second_factor_reset", words, by)


def _remove(user: User, action: str, words: str, by: By) -> bool:
    RecoveryCode.objects.filter(user=user).delete()
    removed, _ = SecondFactor.objects.filter(user=user).delete()
    if removed:
        record(by, action, "user", user.pk, words)
    return removed > 0


@transaction.atomic
def new_recovery_codes(user: User, *, by: By) -> list[str]:
    """Replace all recovery codes; return the new ones, which are shown once."""
    record(by, "account.recovery_codes", "user", user.pk, f"{user.username} created new recovery codes")
    return _replace_codes(user)


def _replace_codes(user: User) -> list[str]:
    codes = ["".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH)) for _ in range(CODE_COUNT)]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create([RecoveryCode(user=user, code_hash=_hash(user, code)) for code in codes])
    half = CODE_LENGTH // 2
    return [f"{code[:half]}-{code[half:]}" for code in codes]


@transaction.atomic
def use_code(user: User, text: str, *, by: By) -> bool:
    """Use up a code of the app or a recovery code; return whether it was valid."""
    code = "".join(text.split()).replace("-", "").lower()
    if len(code) == DIGITS and code.isascii() and code.isdecimal():
        return _use_app_code(user, code, by.at)
    used, _ = RecoveryCode.objects.filter(user=user, code_hash=_hash(user, code)).delete()
    if used:
        record(by, "account.recovery_code_used", "user", user.pk, f"{user.username} used a recovery code")
    return used > 0


def _use_app_code(user: User, code: str, now: datetime) -> bool:
    factor = SecondFactor.objects.filter(user=user).first()
    secret = decrypt_text(factor.secret, context=_context(user)) if factor else None
    step = matching_step(secret, code, now) if secret else None
    if step is None:
        return False
    return bool(SecondFactor.objects.filter(user=user, last_step__lt=step).update(last_step=step))


def _totp(secret: str) -> TOTP:
    return TOTP(base64.b32decode(secret), DIGITS, SHA1(), STEP_SECONDS)  # noqa: S303  what all apps use


def _context(user: User) -> str:
    return f"second factor {user.pk}"


def _hash(user: User, code: str) -> str:
    return salted_hmac("memoryhub.recovery_code", f"{user.pk} {code}", algorithm="sha256").hexdigest()
