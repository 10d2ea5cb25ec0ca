"""Workspaces, the unit of tenancy, and who may see them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.querysets import WorkspaceQuerySet

# Layouts whose memory documents the hub may write in the agent's folder, and those with instructions that people
# keep, which it may write if an operator turns that on. See knowledge_app.services.documents.write_rules.
WRITTEN_BACK = ("nanobot", "grip", "claude-code", "openclaw", "hermes", "basic-memory", "memory-bank")
INSTRUCTED = ("claude-code", "codex", "gemini-cli", "opencode")


class Workspace(models.Model):
    """One agent's memory. Every other row belongs to exactly one workspace.

    ``project``: which one, if the folder at ``path`` is the home of an agent that keeps several.
    """

    class Layout(models.TextChoices):
        NANOBOT = "nanobot", "nanobot"
        GRIP = "grip", "Grip"
        GRID = "grid", "grid"
        AGTERM = "agterm", "AgTerm"
        CLAUDE_CODE = "claude-code", "Claude Code"
        CODEX = "codex", "Codex"
        GEMINI_CLI = "gemini-cli", "Gemini CLI"
        OPENCLAW = "openclaw", "OpenClaw"
        OPENCODE = "opencode", "OpenCode"
        HERMES = "hermes", "Hermes"
        SERVER_MEMORY = "server-memory", "server-memory"
        BASIC_MEMORY = "basic-memory", "basic-memory"
        MEMORY_BANK = "memory-bank", "Memory bank"
        HUB = "hub", "MemoryHub"

    class ConsolidationStyle(models.TextChoices):
        NANOBOT = "nanobot", _("nanobot: rewrite MEMORY.md")
        GRIP = "grip", _("Grip: append facts")

    class AgentChanges(models.TextChoices):
        ACCEPT = "accept", _("Accept and list")
        HOLD_RISKY = "hold_risky", _("Hold risky changes")
        HOLD_ALL = "hold_all", _("Hold all changes")

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=200)
    layout = models.CharField(max_length=16, choices=Layout.choices, default=Layout.HUB)
    layout_version = models.CharField(max_length=100, blank=True)
    path = models.TextField(blank=True, help_text="The agent's folder, as the hub sees it.")
    project = models.TextField(blank=True, default="", db_default="")
    instructions_path = models.TextField(blank=True, default="", db_default="")
    write_instructions = models.BooleanField(default=False, db_default=False)
    unavailable_since = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    memory_window = models.PositiveIntegerField(default=100)
    consolidation_style = models.CharField(
        max_length=16, choices=ConsolidationStyle.choices, default=ConsolidationStyle.NANOBOT
    )
    auto_consolidate = models.BooleanField(default=True)
    max_tokens = models.PositiveIntegerField(default=50_000)
    max_entries = models.PositiveIntegerField(default=100)
    recent_window = models.PositiveIntegerField(default=10)
    min_entries_to_compress = models.PositiveIntegerField(default=5)
    compression_ratio = models.FloatField(default=0.3)
    auto_compress = models.BooleanField(default=True)
    summary_prompt = models.TextField(blank=True, default="", max_length=4_000)
    model = models.CharField(max_length=200, blank=True)
    model_base_url = models.CharField(max_length=500, blank=True)
    consolidation_model = models.CharField(max_length=200, blank=True)
    extraction_model = models.CharField(max_length=200, blank=True)
    auto_extract = models.BooleanField(default=False)
    embedding_provider = models.CharField(max_length=32, blank=True)
    embedding_model = models.CharField(max_length=200, blank=True)
    embedding_base_url = models.CharField(max_length=500, blank=True)
    dense_search = models.BooleanField(default=False)
    stale_days = models.PositiveIntegerField(default=180)
    cache_hit_count = models.PositiveBigIntegerField(default=0)
    cache_miss_count = models.PositiveBigIntegerField(default=0)
    is_followed = models.BooleanField(default=False)
    write_back = models.BooleanField(default=False)
    agent_changes = models.CharField(max_length=16, choices=AgentChanges.choices, default=AgentChanges.HOLD_RISKY)
    recency_decay = models.FloatField(default=0.0, help_text="Per hour; Grip's own rate is 0.001.")
    daily_token_budget = models.PositiveIntegerField(null=True, blank=True)
    persist_memory = models.BooleanField(default=True)
    knowledge_in_context = models.BooleanField(default=False)
    cache_enabled = models.BooleanField(default=True)
    cache_ttl_seconds = models.PositiveIntegerField(default=3600)
    cache_max_entries = models.PositiveIntegerField(default=500)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(recent_window__lte=F("max_entries")), name="workspace_recent_window_fits"
            ),
            models.CheckConstraint(
                condition=Q(compression_ratio__gt=0, compression_ratio__lt=1), name="workspace_ratio_is_a_share"
            ),
            models.CheckConstraint(condition=Q(recency_decay__gte=0), name="workspace_decay_not_negative"),
            models.CheckConstraint(condition=Q(write_back=False) | ~Q(path=""), name="workspace_written_back_fits"),
            models.CheckConstraint(
                condition=Q(is_followed=False) | ~Q(path=""), name="workspace_followed_has_folder"
            ),
            models.UniqueConstraint(
                fields=["path", "project"], condition=~Q(path=""), name="workspace_one_per_folder"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def program(self) -> str:
        return program_label(self.layout, self.layout_version)

    @property
    def can_be_written(self) -> bool:
        """Tell whether the hub may write any file in the agent's folder, if writing is on."""
        return self.layout in WRITTEN_BACK or (self.layout in INSTRUCTED and self.write_instructions)

    @property
    def is_two_way(self) -> bool:
        """Tell whether both directions of sync are on."""
        return self.is_followed and self.write_back


def program_label(layout: str, version: str) -> str:
    """Return the name of the program that wrote a layout; only nanobot's versions have different layouts."""
    if layout not in Workspace.Layout:
        return layout
    label = str(Workspace.Layout(layout).label)
    return f"{label} {version}".strip() if layout == Workspace.Layout.NANOBOT else label


class Membership(models.Model):
    """A person's role in a workspace; superusers are operators of all."""

    class Role(models.TextChoices):
        OPERATOR = "operator", _("Operator")
        EDITOR = "editor", _("Editor")
        VIEWER = "viewer", _("Viewer")

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} as {self.role}"
