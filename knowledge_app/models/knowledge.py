"""Knowledge entries, observations, key-values and cached responses; curated rows keep their history.

``corrected`` maps fields changed in the hub to their values in the agent's file. Imports don't overwrite them.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from simple_history.models import HistoricalRecords

from memoryhub.lib.database.fields import JSONTextField
from sessions_app.models import Run, Workspace
from sessions_app.models.conversations import KEY_LENGTH


class KnowledgeEntry(models.Model):
    """An entry of Grip's knowledge base. ``content_id``: the agent's id, which never changes.

    ``identity``: Grip's hash of the current category and content, by which duplicates are recognized.
    ``awaits_file_since``: set if the entry isn't in the agent's file because the hub created it or removed it from
    there.
    """

    class Category(models.TextChoices):
        USER_PREFERENCE = "user_preference", _("User preferences")
        PROJECT_DECISION = "project_decision", _("Project decisions")
        ERROR_PATTERN = "error_pattern", _("Error patterns")
        SYSTEM_BEHAVIOR = "system_behavior", _("System behaviour")
        LEARNED_FACT = "learned_fact", _("Learned facts")

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="knowledge_entries")
    content_id = models.CharField(max_length=KEY_LENGTH)
    identity = models.CharField(max_length=16, blank=True)
    category = models.CharField(max_length=32, choices=Category.choices)
    content = models.TextField()
    source = models.TextField(blank=True)
    tags = JSONTextField(default=list, blank=True)
    access_count = models.PositiveIntegerField(default=0)
    accessed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawn_reason = models.TextField(blank=True)
    last_verified_at = models.DateTimeField(null=True, blank=True)
    review_by = models.DateField(null=True, blank=True)
    corrected = JSONTextField(default=dict, blank=True)
    extra = JSONTextField(default=dict, blank=True)
    awaits_file_since = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(default=timezone.now)

    history = HistoricalRecords(excluded_fields=["awaits_file_since"])

    class Meta:
        verbose_name_plural = "knowledge entries"
        constraints = [models.UniqueConstraint(fields=["workspace", "content_id"], name="knowledge_id_once")]
        indexes = [
            models.Index(fields=["workspace", "category", "-access_count", "-id"], name="knowledge_by_category"),
            models.Index(fields=["workspace", "identity"], name="knowledge_by_identity"),
            models.Index(fields=["workspace", "-updated_at"], name="knowledge_latest_change"),
            models.Index(fields=["workspace", "withdrawn_at"], name="knowledge_in_use"),  # counted on every page
            models.Index(
                "workspace",
                Coalesce("created_at", "updated_at").desc(),
                models.F("id").desc(),
                name="knowledge_newest",
                condition=models.Q(withdrawn_at=None),
            ),
        ]

    def __str__(self) -> str:
        return self.content[:80]


class Observation(models.Model):
    """A finding, insight or lesson. ``uid``: the agent's id."""

    class Category(models.TextChoices):
        FINDING = "finding", _("Findings")
        INSIGHT = "insight", _("Insights")
        LESSON = "lesson", _("Lessons")

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="observations")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="observations")
    uid = models.CharField(max_length=KEY_LENGTH)
    category = models.CharField(max_length=16, choices=Category.choices)
    content = models.TextField()
    source = models.TextField(blank=True)
    occurred_at = models.DateTimeField(null=True, blank=True)
    occurred_at_text = models.TextField(blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawn_reason = models.TextField(blank=True)
    access_count = models.PositiveIntegerField(default=0)
    accessed_at = models.DateTimeField(null=True, blank=True)
    confirmation_count = models.PositiveIntegerField(default=0)
    last_verified_at = models.DateTimeField(null=True, blank=True)
    review_by = models.DateField(null=True, blank=True)
    corrected = JSONTextField(default=dict, blank=True)
    extra = JSONTextField(default=dict, blank=True)
    recorded_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    history = HistoricalRecords()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "uid"], name="observation_uid_once")]
        indexes = [
            models.Index(fields=["workspace", "category", "-id"], name="observation_by_category"),
            models.Index(fields=["workspace", "withdrawn_at"], name="observation_in_use"),
            models.Index(
                "workspace",
                Coalesce("occurred_at", "recorded_at").desc(),
                models.F("id").desc(),
                name="observation_newest",
                condition=models.Q(withdrawn_at=None),
            ),
        ]

    def __str__(self) -> str:
        return self.content[:80]


class Confirmation(models.Model):
    """An extracted text similar to a known observation; a person decides whether it is the same."""

    class Status(models.TextChoices):
        OFFERED = "offered", _("Offered")
        CONFIRMED = "confirmed", _("Confirmed")
        KEPT_APART = "kept_apart", _("Kept Apart")

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="confirmations")
    observation = models.ForeignKey(Observation, on_delete=models.CASCADE, related_name="confirmations")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="confirmations")
    category = models.CharField(max_length=16, choices=Observation.Category.choices)
    content = models.TextField()
    source = models.TextField(blank=True)
    similarity = models.FloatField()
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.OFFERED)
    created_at = models.DateTimeField(default=timezone.now)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=200, blank=True)

    class Meta:
        indexes = [models.Index(fields=["workspace", "status", "-id"], name="confirmation_offered")]

    def __str__(self) -> str:
        return self.content[:80]


class KeyValue(models.Model):
    """An exact value under an exact key. ``is_json``: the source's value wasn't a string and is stored as JSON.

    ``is_secret``: the key or value looks like a secret (``memoryhub.lib.secrets``); derived when the row is written.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="key_values")
    key = models.CharField(max_length=KEY_LENGTH, blank=True)
    value = models.TextField(blank=True)
    is_json = models.BooleanField(default=False)
    is_secret = models.BooleanField(default=False)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawn_reason = models.TextField(blank=True)
    corrected = JSONTextField(default=dict, blank=True)
    updated_at = models.DateTimeField(default=timezone.now)

    history = HistoricalRecords()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "key"], name="key_once")]

    def __str__(self) -> str:
        return self.key


class CachedResponse(models.Model):
    """A model's reply, keyed by the hash of the message and the model's name."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="cached_responses")
    key = models.CharField(max_length=KEY_LENGTH)
    model = models.CharField(max_length=200, blank=True)
    response = models.TextField(blank=True)
    preview = models.TextField(blank=True)
    hit_count = models.PositiveIntegerField(default=0)
    extra = JSONTextField(default=dict, blank=True)
    created_at = models.DateTimeField(null=True, blank=True)
    accessed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "key"], name="cached_response_once")]
        indexes = [models.Index(fields=["workspace", "-accessed_at", "-id"], name="cached_response_recent")]

    def __str__(self) -> str:
        return self.preview or self.key
