"""The state of a workspace's sync with its agent's folder."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from memoryhub.lib.database.fields import JSONTextField
from sessions_app.models.workspaces import Workspace


class SyncState(models.Model):
    """The results of a workspace's last syncs. Times are null until they happened once.

    ``changed_at``, ``counts``: of the last sync that changed something. ``lag_seconds``: the longest time in that
    sync from a file's modification until it was in the hub. ``unwritten``: the paths that can't be written, each with
    the reason. ``knowledge_mark``: the state of the knowledge entries that was last compared with the agent's file.
    """

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, related_name="sync_state")
    started_at = models.DateTimeField(null=True, blank=True)
    succeeded_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    error = models.TextField(blank=True)
    lag_seconds = models.FloatField(null=True, blank=True)
    counts = JSONTextField(default=dict, blank=True)
    unwritten = JSONTextField(default=dict, blank=True)
    knowledge_mark = models.CharField(max_length=100, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(lag_seconds=None) | Q(lag_seconds__gte=0), name="sync_lag_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(failed_at=None) | ~Q(error_code=""),
                name="sync_failure_has_a_code",
            ),
        ]

    def __str__(self) -> str:
        return f"sync of {self.workspace_id}"
