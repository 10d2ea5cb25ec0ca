"""The audit trail, and the guards of append-only tables and search indexes."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.database.fields import JSONTextField
from sessions_app.models.workspaces import Workspace


class AuditSeal(models.Model):
    """Covers the ids of older audit records, and the previous seal, so that deleting one is noticed."""

    record_count = models.PositiveIntegerField()
    mac = models.CharField(max_length=64)
    key_check = models.CharField(max_length=8)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"seal of {self.record_count} audit records"


class AuditRecord(models.Model):
    """One change, written in its transaction. Never updated or deleted, except by forgetting.

    ``mac``: see ``services.audit_chain``.

    Records are also the activity feed and the source of webhooks. The links to workspace and session have no database
    constraint, so that records outlive them.
    """

    class ActorKind(models.TextChoices):
        PERSON = "person", _("Person")
        AGENT = "agent", _("Agent")
        RUN = "run", _("Run")
        SYNC = "sync", _("Sync")
        COMMAND = "command", _("Command")

    workspace = models.ForeignKey(
        Workspace, null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="audit_records"
    )
    actor_kind = models.CharField(max_length=16, choices=ActorKind.choices)
    actor_name = models.CharField(max_length=200)
    session = models.ForeignKey(
        "sessions_app.Session", null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    action = models.CharField(max_length=64)
    object_kind = models.CharField(max_length=32)
    object_id = models.CharField(max_length=64)
    text = models.TextField()
    before_hash = models.CharField(max_length=64, blank=True)
    after_hash = models.CharField(max_length=64, blank=True)
    detail = JSONTextField(default=dict, blank=True)
    at = models.DateTimeField(default=timezone.now)
    mac = models.CharField(max_length=64, blank=True, unique=True)
    seal = models.ForeignKey(
        AuditSeal, null=True, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="records"
    )

    class Meta:
        indexes = [
            models.Index(fields=["workspace", "-id"], name="audit_latest"),
            models.Index(fields=["seal", "id"], name="audit_of_seal"),
            models.Index(fields=["session", "-id"], condition=Q(session__isnull=False), name="audit_of_session"),
            models.Index(fields=["object_kind", "object_id"], name="audit_of_object"),
        ]

    def __str__(self) -> str:
        return self.text


class MutationGuard(models.Model):
    """Allows the removal of append-only rows while it exists: only inside the transaction that removes them."""

    reason = models.TextField()
    opened_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.reason


class IndexGuard(models.Model):
    """Suspends SQLite's search index triggers of a table during a bulk insert.

    Exists only inside the transaction, which indexes the rows above ``last_id`` at its end
    (``lib.search.index_maintenance``).
    """

    indexed_table = models.CharField(max_length=64)
    last_id = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return self.indexed_table
