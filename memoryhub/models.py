"""The hub's own rows: how the first operator gets in."""

from __future__ import annotations

from django.db import models


class SetupToken(models.Model):
    """A one-time link to make the first account; only the hash of the token is stored."""

    token_hash = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"setup token until {self.expires_at}"
