"""Models of agents' access: tokens, OAuth clients and connections, repeated calls and the access log."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.database.fields import JSONTextField


class ApiToken(models.Model):
    """An agent's token for REST and MCP, for one workspace and some scopes.

    The token is shown once. Stored are its public ``prefix``, for lookups, and an HMAC of the whole token.
    """

    workspace = models.ForeignKey("sessions_app.Workspace", on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100, help_text="The agent's name, as records show it.")
    prefix = models.CharField(max_length=16, unique=True)
    token_hash = models.CharField(max_length=64)
    scopes = JSONTextField(default=list)
    per_minute = models.PositiveIntegerField(default=600)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "name"], condition=Q(revoked_at__isnull=True), name="living_token_name_once"
            ),
        ]
        indexes = [models.Index(fields=["workspace", "-id"], name="token_latest")]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class ReadGrant(models.Model):
    """A workspace that a token may read besides its own, until the grant ends. It never allows writing."""

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="read_grants")
    workspace = models.ForeignKey("sessions_app.Workspace", on_delete=models.CASCADE, related_name="read_grants")
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token", "workspace"], name="read_grant_once")]

    def __str__(self) -> str:
        return f"{self.token} reads {self.workspace}"


class OAuthClient(models.Model):
    """A program that registered itself for OAuth. Anybody can register one, under any name."""

    client_id = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=80)
    redirect_uris = JSONTextField(default=list)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "OAuth client"
        indexes = [models.Index(fields=["created_at"], name="oauth_client_age")]

    def __str__(self) -> str:
        return self.name


class OAuthConnection(models.Model):
    """A person's permission for a client to use a workspace over MCP. Its token's text changes with each refresh.

    ``resource``: the only address at which the token is valid. ``refresh_key``: the part of the refresh token that
    stays the same; whoever knows it has held one. ``refresh_hash``: of the only valid refresh token, "" for none.
    Without this row, the token would be a plain API token, so deleting the person or the client keeps it.
    """

    token = models.OneToOneField(ApiToken, on_delete=models.CASCADE, related_name="connection")
    client = models.ForeignKey(OAuthClient, on_delete=models.PROTECT, related_name="connections")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="oauth_connections"
    )
    resource = models.CharField(max_length=500)
    redirect_uri = models.CharField(max_length=2000)
    code_hash = models.CharField(max_length=64, unique=True)
    code_challenge = models.CharField(max_length=43)
    code_expires_at = models.DateTimeField()
    code_used_at = models.DateTimeField(null=True, blank=True)
    access_expires_at = models.DateTimeField(null=True, blank=True)
    refresh_key = models.CharField(max_length=32, unique=True)
    refresh_hash = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name = "OAuth connection"

    def __str__(self) -> str:
        return f"{self.client} of {self.user}"


class IdempotentCall(models.Model):
    """A successful unsafe call with an idempotency key. Repeating the call returns the same response.

    Saved in the transaction of the change. ``request_hash``: of method, URL and body.
    """

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="idempotent_calls")
    idempotency_key = models.CharField(max_length=200)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    answer = JSONTextField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token", "idempotency_key"], name="idempotency_key_once")]
        indexes = [models.Index(fields=["created_at"], name="idempotent_call_age")]

    def __str__(self) -> str:
        return f"call {self.pk}"


class AccessRecord(models.Model):
    """Who read something, when and how; ``AccessedRow`` records what. Contains no text of the memory.

    Changes are audit records, and runs record what they read themselves.
    """

    AGENT = "agent"  # as ``actor_kind``

    class Via(models.TextChoices):
        PAGE = "page", _("page")
        REST = "rest", "REST"
        MCP = "mcp", "MCP"

    workspace = models.ForeignKey("sessions_app.Workspace", on_delete=models.CASCADE, related_name="access_records")
    token = models.ForeignKey(ApiToken, null=True, on_delete=models.SET_NULL, related_name="access_records")
    actor_kind = models.CharField(max_length=16)
    actor_name = models.CharField(max_length=200)
    via = models.CharField(max_length=16, choices=Via.choices)
    action = models.CharField(max_length=32)
    row_count = models.PositiveIntegerField()
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["workspace", "-id"], name="access_latest"),
            models.Index(fields=["token", "-id"], name="access_of_token"),
            models.Index(fields=["at"], name="access_age"),
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor_name}"

    @property
    def is_by_agent(self) -> bool:
        return self.actor_kind == self.AGENT


class AccessedRow(models.Model):
    """What was read: positions of a session, a revision of a document, or the id of another row.

    ``parent``: the id of the session or document; 0 for other tables, whose row is ``first`` and ``last``.
    """

    access = models.ForeignKey(AccessRecord, on_delete=models.CASCADE, related_name="rows")
    table = models.CharField(max_length=32)
    parent = models.BigIntegerField(default=0)
    epoch = models.PositiveIntegerField(default=0)
    first = models.BigIntegerField()
    last = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["table", "parent", "epoch", "first"], name="accessed_row_of")]

    def __str__(self) -> str:
        return f"{self.table} {self.first}"
