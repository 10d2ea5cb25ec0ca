"""Models of settings, accounts, saved searches, processes and jobs, and those of agents' access."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.account_models import Identity, Passkey, RecoveryCode, SecondFactor
from memoryhub.agent_models import (
    AccessedRow,
    AccessRecord,
    ApiToken,
    IdempotentCall,
    OAuthClient,
    OAuthConnection,
    ReadGrant,
)
from memoryhub.lib.database.fields import JSONTextField

__all__ = [  # besides the models below
    "AccessRecord",
    "AccessedRow",
    "ApiToken",
    "IdempotentCall",
    "Identity",
    "OAuthClient",
    "OAuthConnection",
    "Passkey",
    "ReadGrant",
    "RecoveryCode",
    "SecondFactor",
]


class SetupToken(models.Model):
    """A one-time link for creating the first account. Only the token's hash is stored."""

    token_hash = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"setup token until {self.expires_at}"


class Invitation(models.Model):
    """A one-time link for creating an account with some roles. Only the token's hash is stored.

    If ``user`` is set, it is a password reset link. ``is_operator``: of the whole hub.
    """

    token_hash = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=100, blank=True, help_text="Who it is for, as the list shows it.")
    is_operator = models.BooleanField(default=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="invitations"
    )
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    used_by = models.CharField(max_length=150, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"invitation of {self.name or 'somebody'}"


class InvitedRole(models.Model):
    """A role that an invitation grants in a workspace, one of ``Membership.Role``."""

    invitation = models.ForeignKey(Invitation, on_delete=models.CASCADE, related_name="roles")
    workspace = models.ForeignKey("sessions_app.Workspace", on_delete=models.CASCADE, related_name="invited_roles")
    role = models.CharField(max_length=16)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["invitation", "workspace"], name="invited_role_once")]

    def __str__(self) -> str:
        return f"{self.role} of {self.workspace_id}"


class SignIn(models.Model):
    """A browser in which a user is signed in, until its session ends."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_ins")
    session_key = models.CharField(max_length=40, unique=True)
    browser = models.CharField(max_length=300, blank=True)
    address = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["user", "-seen_at"], name="sign_in_latest")]

    def __str__(self) -> str:
        return f"sign-in {self.pk}"


class FailedAttempts(models.Model):
    """The number of recent failed attempts to sign in, or of an agent's calls in a minute.

    ``key``: the SHA-256 of an address, a name, a browser or a token's minute.
    """

    key = models.CharField(max_length=64, unique=True)
    count = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "failed attempts"

    def __str__(self) -> str:
        return f"{self.count} failed attempts"


class Preferences(models.Model):
    """Display preferences of a user. Empty values follow the browser."""

    class Theme(models.TextChoices):
        SYSTEM = "", _("As the system has it")
        LIGHT = "light", _("Light")
        DARK = "dark", _("Dark")

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preferences")
    theme = models.CharField(max_length=8, choices=Theme.choices, blank=True, default=Theme.SYSTEM)
    time_zone = models.CharField(max_length=64, blank=True)
    language = models.CharField(max_length=16, blank=True)

    class Meta:
        verbose_name_plural = "preferences"

    def __str__(self) -> str:
        return f"preferences of {self.user_id}"


class StoredSetting(models.Model):
    """A setting of the hub that was saved on its settings page. The environment takes precedence.

    ``name``: of the environment variable. ``value``: as in the environment; an API key is encrypted.
    """

    name = models.CharField(max_length=64, unique=True)
    value = models.TextField()
    updated_by = models.CharField(max_length=200)
    updated_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class Process(models.Model):
    """A process that uses the database and renews ``seen_at``, by the database's clock.

    ``name``: host, process id and start time, as in ``lease_owner`` of jobs and runs. ``home``: host and home.
    """

    class Kind(models.TextChoices):
        WEB = "web", _("Web")
        WORKER = "worker", _("Worker")
        COMMAND = "command", _("Command")

    name = models.CharField(max_length=300, unique=True)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    home = models.CharField(max_length=300, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "processes"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Job(models.Model):
    """Background work that isn't a run. The table is the queue.

    ``file_name``: of a file for download. ``unique_key``: of which only one job is queued or running at a time.
    ``not_before``: the earliest start. ``attempt_count``: failed attempts; ``takeover_count``: workers that died
    while running it. ``lease_owner``: the process that runs it and holds ``fencing_number``. ``home``:
    ``Process.home`` of the files it needs. ``dismissed_at``: since when its failure doesn't need attention.
    """

    class Kind(models.TextChoices):
        EXPORT = "export", _("Export")
        COMPRESSION = "compression", _("Compression")
        REBUILD = "rebuild", _("Rebuild")
        IMPORT = "import", _("Import")
        SYNC = "sync", _("Sync")
        BACKUP = "backup", _("Backup")
        BACKUP_CHECK = "backup_check", _("Check of a backup")
        WEBHOOK = "webhook", _("Webhook delivery")
        SWEEP = "sweep", _("Sweep")
        PRUNING = "pruning", _("Pruning")
        ERASURE = "erasure", _("Erasure")
        DEMO = "demo", _("Demo")

    class Status(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    workspace = models.ForeignKey(
        "sessions_app.Workspace", null=True, blank=True, on_delete=models.CASCADE, related_name="jobs"
    )
    kind = models.CharField(max_length=16, choices=Kind.choices)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.QUEUED)
    requested_by = models.CharField(max_length=200)
    options = JSONTextField(default=dict, blank=True)
    unique_key = models.CharField(max_length=200, blank=True)
    home = models.CharField(max_length=300, blank=True)
    stage = models.CharField(max_length=200, blank=True)
    steps_done = models.PositiveIntegerField(default=0)
    steps_total = models.PositiveIntegerField(default=0)
    result = JSONTextField(default=dict, blank=True)
    file_name = models.CharField(max_length=200, blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    error = models.TextField(blank=True)
    attempt_count = models.PositiveIntegerField(default=0)
    takeover_count = models.PositiveIntegerField(default=0)
    lease_owner = models.CharField(max_length=300, blank=True)
    fencing_number = models.PositiveIntegerField(default=0)
    cancel_asked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    not_before = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    dismissed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["unique_key"],
                condition=Q(status__in=("queued", "running"), cancel_asked_at=None) & ~Q(unique_key=""),
                name="live_job_once",
            )
        ]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="job_latest"),
            models.Index(fields=["status"], name="job_status"),
            models.Index(fields=["not_before"], condition=Q(status="queued"), name="job_due"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def is_live(self) -> bool:
        return self.status in (self.Status.QUEUED, self.Status.RUNNING)


class SavedSearch(models.Model):
    """A saved search in a workspace, or in all visible workspaces if it is null.

    ``params``: the URL parameters besides the query. ``seen``: the highest id seen by its owner, by kind; later rows
    count as new. Shared searches are visible to everybody who can read the workspace.
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
    """A recent search of a user, visible only to them."""

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
