"""The one-time setup link for the first account."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext

from memoryhub.lib.errors import Gone
from memoryhub.models import SetupToken
from sessions_app.services.audit import Actor, By, record


def operator_exists() -> bool:
    return User.objects.filter(is_superuser=True, is_active=True).exists()


def issue_setup_token(now: datetime) -> str:
    """Return a new token for the setup link, and delete earlier unused ones."""
    token = secrets.token_urlsafe(32)
    expires_at = now + timedelta(minutes=settings.MEMORYHUB_SETUP_MINUTES)
    with transaction.atomic():
        SetupToken.objects.filter(used_at__isnull=True).delete()
        SetupToken.objects.create(token_hash=_hash(token), expires_at=expires_at)
    return token


def is_valid(token: str, now: datetime) -> bool:
    return _usable(token, now).exists() and not operator_exists()


def create_first_operator(*, token: str, username: str, password: str, now: datetime) -> User:
    """Create the first operator and mark the token as used. Raises Gone."""
    with transaction.atomic():
        spent = _usable(token, now).update(used_at=now)
        if not spent or operator_exists():
            raise Gone(
                gettext("This setup link was used or has expired. Restart the hub to get a new one."),
                code="setup_link_invalid",
            )
        user = User.objects.create_superuser(username=username, password=password)
        record(
            By(Actor("person", username), now),
            "account.created",
            "user",
            user.pk,
            f"{username} became the first operator",
        )
    return user


def _usable(token: str, now: datetime) -> QuerySet[SetupToken]:
    return SetupToken.objects.filter(token_hash=_hash(token), used_at__isnull=True, expires_at__gt=now)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
