"""The history log."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Coalesce
from django.utils import timezone

from memoryhub.lib.database.fields import JSONTextField
from sessions_app.models import Run, Session, Workspace


class HistoryQuerySet(models.QuerySet["HistoryEntry"]):
    def in_order(self) -> HistoryQuerySet:
        """Order as in the file: a new version takes the place of the earlier one."""
        return self.order_by(Coalesce("version_of", "position"), "position")


class HistoryEntry(models.Model):
    """An entry of HISTORY.md, its archives or a journal. Append-only; positions have no gaps.

    Entries are ordered by arrival, because their times are written by models. Withdrawn entries stay readable.
    An edit in the file adds a row with ``version_of``, and withdraws the earlier version.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="history_entries")
    session = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="history_entries"
    )
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="history_entries")
    position = models.PositiveIntegerField()
    version_of = models.PositiveIntegerField(
        null=True, blank=True, help_text="The position of the first version, if an edit in the file replaced it."
    )
    content = models.TextField()
    occurred_at = models.DateTimeField(null=True, blank=True)
    occurred_at_text = models.TextField(blank=True)
    source = models.TextField(blank=True, help_text="The file it was read from.")
    source_hash = models.CharField(max_length=64)
    is_archived = models.BooleanField(default=False)
    extra = JSONTextField(default=dict, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    recorded_at = models.DateTimeField(default=timezone.now)

    objects = HistoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "history entries"
        constraints = [models.UniqueConstraint(fields=["workspace", "position"], name="history_position_once")]
        indexes = [
            models.Index(fields=["workspace", "occurred_at"], name="history_by_time"),
            models.Index(
                "workspace",
                Coalesce("occurred_at", "recorded_at").desc(),
                models.F("id").desc(),
                name="history_newest",
                condition=models.Q(withdrawn_at=None),
            ),
        ]

    def __str__(self) -> str:
        return self.content[:80]
