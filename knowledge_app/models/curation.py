"""Rows changed by edits, concerns found by scans, and receipts of forgetting."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.database.fields import JSONTextField
from sessions_app.models import Run, Workspace


class EditedRow(models.Model):
    """The fields of a row that an edit changed, before and after.

    ``before`` is null for a row that the edit created, ``after`` for one that it removed. Undoing restores ``before``
    if the row still equals ``after``.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="edited_rows")
    table = models.CharField(max_length=32)
    object_id = models.BigIntegerField()
    before = JSONTextField(null=True)
    after = JSONTextField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "table", "object_id"], name="edited_row_once")]

    def __str__(self) -> str:
        return f"{self.table} {self.object_id}"


class Concern(models.Model):
    """A problem in the memory, found by a scan, that a person should review.

    ``fingerprint`` identifies a concern across scans, so that a dismissed one isn't reported again.
    """

    class Kind(models.TextChoices):
        DUPLICATE = "duplicate", _("Duplicates")
        CONTRADICTION = "contradiction", _("Contradictions")
        STALE = "stale", _("Stale")
        ORDER = "order", _("Instruction-like")
        SECRET = "secret", _("Secrets")
        PERSONAL = "personal", _("Personal data")

    class Status(models.TextChoices):
        OPEN = "open", _("Open")
        DISMISSED = "dismissed", _("Dismissed")
        SETTLED = "settled", _("Settled")

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="concerns")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="concerns")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.OPEN)
    table = models.CharField(max_length=32)
    object_id = models.BigIntegerField()
    other_table = models.CharField(max_length=32, blank=True)
    other_id = models.BigIntegerField(null=True, blank=True)
    what = models.CharField(max_length=200)
    weight = models.FloatField(default=1.0)
    fingerprint = models.CharField(max_length=64)
    found_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "fingerprint"], name="concern_once")]
        indexes = [models.Index(fields=["workspace", "status", "kind", "-id"], name="concern_by_kind")]

    def __str__(self) -> str:
        return self.what


class HygieneScore(models.Model):
    """The result of a scan: a score from 0 to 100, the number of rows scanned, and open concerns by kind."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="hygiene_scores")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    score = models.FloatField()
    row_count = models.PositiveIntegerField()
    counts = JSONTextField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["workspace", "-id"], name="hygiene_score_latest")]

    def __str__(self) -> str:
        return f"{self.score:.0f}"


class Forgotten(models.Model):
    """The receipt of something forgotten: its kind and counts, never its content.

    ``digests``: keyed hashes by which imports recognize the words (``memoryhub.forgetting.matching``). Without a
    workspace, it is a person erased in the whole hub; ``workspaces``: the slug of each workspace (None: rows of none)
    and its counts. The receipt of a workspace has only the rows of none there, if they were searched. ``files``: the
    content hashes of the agents' files that contained it, by the id of the ``SourceFile``.
    """

    class Kind(models.TextChoices):
        PHRASE = "phrase", _("a phrase")
        PERSON = "person", _("a person")
        SOURCE = "source", _("a source")
        SESSION = "session", _("a session")

    workspace = models.ForeignKey(
        Workspace, null=True, blank=True, on_delete=models.CASCADE, related_name="forgotten"
    )
    kind = models.CharField(max_length=16, choices=Kind.choices)
    digests = JSONTextField(default=list, blank=True)
    counts = JSONTextField(default=dict)
    workspaces = JSONTextField(default=list, blank=True)
    files = JSONTextField(default=dict, blank=True, db_default={})
    reason = models.TextField(blank=True)
    forgotten_by = models.CharField(max_length=200)
    forgotten_at = models.DateTimeField(default=timezone.now)
    lifted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "forgotten"
        indexes = [models.Index(fields=["workspace", "-id"], name="forgotten_latest")]

    def __str__(self) -> str:
        return f"forgotten {self.pk}"

    @property
    def places(self) -> list[str]:
        """The slugs of the workspaces that contained the person."""
        return list(dict.fromkeys(place["workspace"] for place in self.workspaces if place["workspace"]))

    @property
    def is_everywhere(self) -> bool:
        """Whether rows of no workspace were searched, too."""
        return any(place["workspace"] is None for place in self.workspaces)

    @property
    def totals(self) -> list[tuple[str | None, int]]:
        """The slug and number of rows of each workspace, for templates."""
        return [(place["workspace"], sum(place["rows"].values())) for place in self.workspaces]

    @property
    def listed(self) -> list[tuple[str, int]]:
        """The counts by table as pairs, for templates."""
        return list(self.counts.items())
