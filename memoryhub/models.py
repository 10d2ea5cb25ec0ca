"""The hub's own rows: how the first operator gets in, and what people search for."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from memoryhub.lib.fields import JSONTextField


class SetupToken(models.Model):
    """A one-time link to make the first account; only the hash of the token is stored."""

    token_hash = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"setup token until {self.expires_at}"


class SavedSearch(models.Model):
    """A search that somebody comes back to, in one workspace or (null) all that they may see.

    ``params`` are those of the page's address beside the query. ``seen``: by kind, the highest key among the rows
    that its owner had a chance to see, so that what came later counts as new. A shared one is for all who may read
    the workspace.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_searches")
    workspace = models.ForeignKey(
        "sessions_app.Workspace", null=True, blank=True, on_delete=models.CASCADE, related_name="saved_searches"
    )
    name = models.CharField(max_length=100)
    query = models.CharField(max_length=512, blank=True)
    params = JSONTextField(default=dict, blank=True)
    is_shared = models.BooleanField(default=False)
    seen = JSONTextField(default=dict, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "saved searches"
        constraints = [
            models.UniqueConstraint(fields=["user", "workspace", "name"], name="saved_search_name_once"),
            models.UniqueConstraint(
                fields=["user", "name"], condition=Q(workspace__isnull=True), name="saved_search_of_hub_once"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class RecentSearch(models.Model):
    """One of the last searches of a person, for the list under the search box; only they see it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recent_searches")
    workspace = models.ForeignKey(
        "sessions_app.Workspace", null=True, blank=True, on_delete=models.CASCADE, related_name="recent_searches"
    )
    query = models.CharField(max_length=512)
    searched_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "recent searches"
        indexes = [models.Index(fields=["user", "-searched_at"], name="recent_search_latest")]

    def __str__(self) -> str:
        return self.query
