"""Source files and import reports."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.database.fields import JSONTextField
from sessions_app.models.conversations import Session
from sessions_app.models.workspaces import Workspace, program_label


class SourceFolder(models.Model):
    """A folder that a workspace is fed from beside its own (``Workspace.path``): read, but never written to.

    ``label``: unique in the workspace; what is read from the folder is named with it. ``project``,
    ``instructions_path``: as in Workspace. The times are of its last syncs. ``removed_at``: since when it isn't read
    any more; everything read from it stays.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="source_folders")
    label = models.CharField(max_length=64)
    path = models.TextField()
    project = models.TextField(blank=True, default="")
    layout = models.CharField(max_length=16, choices=Workspace.Layout.choices)
    layout_version = models.CharField(max_length=100, blank=True)
    instructions_path = models.TextField(blank=True, default="")
    is_followed = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    removed_at = models.DateTimeField(null=True, blank=True)
    succeeded_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    error = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "label"], name="source_folder_label_once"),
            models.UniqueConstraint(fields=["workspace", "path", "project"], name="source_folder_once"),
            models.CheckConstraint(
                condition=Q(failed_at=None) | ~Q(error_code=""), name="source_folder_failure_has_code"
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def program(self) -> str:
        return program_label(self.layout, self.layout_version)

    @property
    def unavailable_since(self) -> datetime | None:
        return self.failed_at if self.error_code == "folder_missing" else None


class SourceFile(models.Model):
    """A file in an agent's folder as last read. A session's file belongs to one epoch.

    ``folder``: null for the workspace's own; the paths of other folders' files are absolute. ``stamp``: the file's
    state when it was read (``memoryhub.lib.files.safe_folder``); "" forces another read.
    """

    class Status(models.TextChoices):
        READ = "read", _("read")
        PROBLEMS = "problems", _("read with problems")
        HELD = "held", _("held")
        REJECTED = "rejected", _("not readable")
        MISSING = "missing", _("missing")

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="source_files")
    path = models.TextField()
    folder = models.ForeignKey(SourceFolder, null=True, blank=True, on_delete=models.SET_NULL, related_name="files")
    path_hash = models.CharField(max_length=64)  # a path can be longer than an index row
    kind = models.CharField(max_length=16)
    status = models.CharField(max_length=16, choices=Status.choices)
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="source_files")
    epoch = models.PositiveIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)
    mtime_ns = models.BigIntegerField(default=0)
    content_hash = models.CharField(max_length=64, blank=True)
    stamp = models.CharField(max_length=100, blank=True)
    note = models.TextField(blank=True)
    extra = JSONTextField(default=dict, blank=True)
    first_seen_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "path_hash"], name="source_file_once")]

    def __str__(self) -> str:
        return self.path


class ImportReport(models.Model):
    """The result of one import of a folder: what was added, changed and found wrong.

    ``job``: carries it out; null once the queue has forgotten it. ``status``: "" until the import is over.
    ``dismissed_at``: since when its failure or problems don't need attention.
    """

    class Status(models.TextChoices):
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    workspace = models.ForeignKey(
        Workspace, null=True, blank=True, on_delete=models.CASCADE, related_name="import_reports"
    )
    job = models.OneToOneField(
        "memoryhub.Job", null=True, blank=True, on_delete=models.SET_NULL, related_name="import_report"
    )
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    path = models.TextField()
    project = models.TextField(blank=True, default="", db_default="")
    name = models.CharField(max_length=200, blank=True)
    wanted_layout = models.CharField(max_length=16, default="auto")
    layout = models.CharField(max_length=16, blank=True)
    layout_version = models.CharField(max_length=100, blank=True)
    status = models.CharField(max_length=16, choices=Status.choices, blank=True)
    file_count = models.PositiveIntegerField(default=0)
    files_done = models.PositiveIntegerField(default=0)
    added = JSONTextField(default=dict, blank=True)
    updated = JSONTextField(default=dict, blank=True)
    unchanged = JSONTextField(default=dict, blank=True)
    problem_count = models.PositiveIntegerField(default=0)
    error_code = models.CharField(max_length=64, blank=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    dismissed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["workspace", "-id"], name="import_latest")]

    def __str__(self) -> str:
        return f"import {self.pk}"

    @property
    def program(self) -> str:
        return program_label(self.layout, self.layout_version)

    @property
    def state(self) -> str:
        """How it ended, or the state of its job."""
        return self.status or (self.job.status if self.job else self.Status.FAILED)


class ImportProblem(models.Model):
    """Something that an import couldn't read as it was; ``raw`` is an excerpt of the source bytes."""

    report = models.ForeignKey(ImportReport, on_delete=models.CASCADE, related_name="problems")
    file = models.TextField()
    line = models.PositiveIntegerField(null=True, blank=True)
    what = models.TextField()
    action = models.TextField()
    outcome = models.CharField(max_length=16)
    raw = models.BinaryField(default=b"")

    def __str__(self) -> str:
        return self.what
