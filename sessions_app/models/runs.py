"""Runs: executions of consolidation, compression, extraction, bulk edits and other work on memory."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.database.fields import JSONTextField
from sessions_app.models.conversations import Session
from sessions_app.models.workspaces import Workspace

LIVE_STATUSES = ("queued", "running")
UNSETTLED_STATUSES = (*LIVE_STATUSES, "held", "parked")


class Run(models.Model):
    """One execution: its options, result and cost.

    The finished consolidations of an epoch tile ``[0, last_consolidated)`` without gaps or overlaps; a pointer moved
    by the agent is a run with ``origin`` agent. A queued run starts at ``not_before`` at the earliest. A running run
    has a lease; a takeover raises ``fencing_number``, and only the holder of the latest number may commit.
    ``options``: see ``services.compressing.compression.RunOptions``; ``proposal``: the result.
    """

    class Kind(models.TextChoices):
        CONSOLIDATION = "consolidation", _("Consolidation")
        COMPRESSION = "compression", _("Compression")
        COMPACTION = "compaction", _("Compaction")
        EXTRACTION = "extraction", _("Extraction")
        EMBEDDING = "embedding", _("Embedding")
        EDIT = "edit", _("Edit")
        SCAN = "scan", _("Scan")

    class Status(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        HELD = "held", _("Held")
        FAILED = "failed", _("Failed")
        PARKED = "parked", _("Parked")
        CANCELLED = "cancelled", _("Cancelled")
        UNDONE = "undone", _("Undone")

    class Origin(models.TextChoices):
        HUB = "hub", _("Hub")
        AGENT = "agent", _("Agent")

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="runs")
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="runs")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.QUEUED)
    origin = models.CharField(max_length=8, choices=Origin.choices, default=Origin.HUB)
    epoch = models.PositiveIntegerField(default=0)
    from_position = models.PositiveIntegerField(default=0)
    to_position = models.PositiveIntegerField(default=0)
    base_revision_number = models.PositiveIntegerField(null=True, blank=True)
    base_hash = models.CharField(max_length=64, blank=True)
    options = JSONTextField(default=dict, blank=True)
    not_before = models.DateTimeField(default=timezone.now)
    stage = models.CharField(max_length=200, blank=True)
    steps_done = models.PositiveIntegerField(default=0)
    steps_total = models.PositiveIntegerField(default=0)
    lease_owner = models.CharField(max_length=100, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    fencing_number = models.PositiveBigIntegerField(default=0)
    attempt_count = models.PositiveIntegerField(default=0)
    model = models.CharField(max_length=200, blank=True)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    requested_by = models.CharField(max_length=200, blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    error = models.TextField(blank=True)
    proposal = JSONTextField(default=dict, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(from_position__lte=F("to_position")), name="run_range_in_order"),
            models.UniqueConstraint(
                fields=["session"], condition=Q(status="running"), name="run_one_running_per_session"
            ),
            models.UniqueConstraint(
                fields=["session", "kind"], condition=Q(status="queued"), name="run_one_queued_per_kind"
            ),
            models.UniqueConstraint(
                fields=["workspace", "kind"],
                condition=Q(status="queued", session__isnull=True, kind__in=["embedding", "scan"]),
                name="run_one_queued_per_workspace",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="run_latest"),
            models.Index(fields=["workspace", "status"], name="run_by_status"),  # counted on every page
            models.Index(fields=["session", "kind", "epoch", "from_position"], name="run_by_place"),
            models.Index(fields=["status", "not_before"], condition=Q(status__in=LIVE_STATUSES), name="run_live"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def is_live(self) -> bool:
        return self.status in LIVE_STATUSES

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens
