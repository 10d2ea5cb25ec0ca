"""Models of the second factor, passkeys, and provider sign-ins. ``memoryhub.models`` imports them for Django."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone


class SecondFactor(models.Model):
    """A person's authenticator app (TOTP).

    ``secret``: encrypted. ``last_step``: the number of the 30 seconds of the last accepted code, so that each code
    works once.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="second_factor")
    secret = models.TextField()
    last_step = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"second factor of {self.user_id}"


class RecoveryCode(models.Model):
    """A code that replaces one of the app. Only its HMAC is stored, and it is deleted when it is used."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes")
    code_hash = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "code_hash"], name="recovery_code_once")]

    def __str__(self) -> str:
        return f"recovery code {self.pk}"


class Identity(models.Model):
    """How an OpenID Connect provider names a person: the same ``subject`` always means the same one.

    ``email``: the verified address at the first sign-in, or "". ``ended_at``: since when it signs nobody in. The row
    is kept, so that an address doesn't connect it again.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    email = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["issuer", "subject"], condition=Q(ended_at=None), name="living_identity_once"
            ),
            models.UniqueConstraint(
                fields=["user", "issuer"], condition=Q(ended_at=None), name="living_identity_of_user_once"
            ),
        ]

    def __str__(self) -> str:
        return f"identity of {self.user_id}"


class Passkey(models.Model):
    """A WebAuthn credential that signs a person in. All binary values are in base64url, without padding.

    ``host``: the relying party's id, the only host where it works. ``credential``: the attested credential data with
    the public key. ``handle``: the authenticator's name for the person. ``sign_count``: its counter at the last
    sign-in, 0 if it has none.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="passkeys")
    name = models.CharField(max_length=100)
    host = models.CharField(max_length=255)
    credential_id = models.CharField(max_length=1400, unique=True)
    credential = models.TextField()
    handle = models.CharField(max_length=100)
    sign_count = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"passkey of {self.user_id}"
