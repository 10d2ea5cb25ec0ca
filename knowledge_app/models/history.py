"""The history log."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from memoryhub.lib.fields import JSONTextField
from sessions_app.models import Run, Session, Workspace


class HistoryEntry(models.Model):
    """An entry of HISTORY.md, its archives or a journal. Append-only; positions have no gaps.

    Entries are ordered by arrival, because their times are written by models. Withdrawn entries stay readable.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="history_entries")
    session = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="history_entries"
    )
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="history_entries")
    position = models.PositiveIntegerField()
    content = models.TextField()
    occurred_at = models.DateTimeField(null=True, blank=True)
    occurred_at_text = models.TextField(blank=True)
    source = models.TextField(blank=True, help_text="The file it was read from.")
    source_hash = models.CharField(max_length=64)
    is_archived = models.BooleanField(default=False)
    extra = JSONTextField(default=dict, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    recorded_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "history entries"
        constraints = [models.UniqueConstraint(fields=["workspace", "position"], name="history_position_once")]
        indexes = [models.Index(fields=["workspace", "occurred_at"], name="history_by_time")]

    def __str__(self) -> str:
        return self.content[:80]
