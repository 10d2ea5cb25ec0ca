"""Webhooks of a workspace, and their deliveries."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.database.fields import JSONTextField
from sessions_app.models.audit import AuditRecord
from sessions_app.models.workspaces import Workspace


class Webhook(models.Model):
    """A URL that receives activity. Its secret is derived from ``salt`` and the hub's key, and never stored."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=500)
    actions = JSONTextField(default=list)  # of AuditRecord; empty: every event
    salt = models.CharField(max_length=64)
    is_enabled = models.BooleanField(default=True)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "url"], name="webhook_url_once")]

    def __str__(self) -> str:
        return self.url


class WebhookDelivery(models.Model):
    """The delivery of an audit record to a webhook. ``status`` is empty until its job has finished."""

    class Status(models.TextChoices):
        SENT = "sent", _("Sent")
        FAILED = "failed", _("Failed")

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    record = models.ForeignKey(AuditRecord, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+")
    job = models.OneToOneField(
        "memoryhub.Job", null=True, blank=True, on_delete=models.SET_NULL, related_name="webhook_delivery"
    )
    status = models.CharField(max_length=16, choices=Status.choices, blank=True)
    attempt_count = models.PositiveIntegerField(default=0)
    response_status = models.PositiveIntegerField(null=True, blank=True)
    error = models.TextField(blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"
        constraints = [models.UniqueConstraint(fields=["webhook", "record"], name="webhook_delivery_once")]
        indexes = [models.Index(fields=["webhook", "-id"], name="webhook_delivery_latest")]

    def __str__(self) -> str:
        return f"delivery {self.pk}"
