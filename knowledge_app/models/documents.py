"""Memory documents, their revisions and facts, and changes held for review."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.content_check.shape import INSTRUCTION, OVERRIDE, ROLE
from memoryhub.lib.database.fields import JSONTextField
from memoryhub.lib.text.change_guard import code_of_check
from sessions_app.models import AuditRecord, Entry, Run, SourceFolder, Workspace


class MemoryDocument(models.Model):
    """MEMORY.md, or another file of memory. ``head``: its current text. ``synced_revision``: last seen in the file.

    ``folder``: null for the workspace's own; documents from others are never written. ``written_over``: the file's
    text before the hub wrote to it, last at ``written_at``. An agent may still write a text based on it.
    ``separator``, limits and ``is_instructions``: see ``DocumentRecord``.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="documents")
    name = models.CharField(max_length=200)
    path = models.TextField(blank=True, help_text="Relative to the agent's folder.")
    folder = models.ForeignKey(
        SourceFolder, null=True, blank=True, on_delete=models.SET_NULL, related_name="documents"
    )
    head = models.ForeignKey("MemoryRevision", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    synced_revision = models.ForeignKey(
        "MemoryRevision", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    written_over = models.ForeignKey(
        "MemoryRevision", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    written_at = models.DateTimeField(null=True, blank=True)
    separator = models.CharField(max_length=16, blank=True, default="", db_default="")
    char_limit = models.PositiveIntegerField(null=True, blank=True)
    byte_limit = models.PositiveIntegerField(null=True, blank=True)
    line_limit = models.PositiveIntegerField(null=True, blank=True)
    is_instructions = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="document_name_once")]

    def __str__(self) -> str:
        return self.name


BEFORE_MERGING, WHILE_REPLACED = "the agent's file before merging", "written while the hub replaced the file"
BYTES_OF_FILE, DECIDED_FILE = "the bytes of the agent's file", "changed in the agent's file; decided by a person"
HELD_FILE = "changed in the agent's file; held for review"
INTERMEDIATE = (BEFORE_MERGING, WHILE_REPLACED, BYTES_OF_FILE, DECIDED_FILE, HELD_FILE)  # the only reasons of such


class MemoryRevision(models.Model):
    """An immutable version of a document. ``raw``: the source bytes if they weren't clean UTF-8 text.

    ``proposal``: the held change that its author accepted with it.
    ``OF_FILE``: intermediate revisions, which only record what a file contained, with the lines that are held.
    """

    OF_FILE = Q(author_kind=AuditRecord.ActorKind.SYNC, reason__in=INTERMEDIATE)
    document = models.ForeignKey(MemoryDocument, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    content = models.TextField(blank=True)
    content_hash = models.CharField(max_length=64)
    raw = models.BinaryField(null=True, blank=True)
    base = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    author_kind = models.CharField(max_length=16, choices=AuditRecord.ActorKind.choices)
    author_name = models.CharField(max_length=200)
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.PROTECT, related_name="revisions")
    reason = models.TextField()
    proposal = models.ForeignKey(
        "HeldChange", null=True, blank=True, on_delete=models.SET_NULL, related_name="revisions"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["document", "number"], name="revision_number_once"),
            models.CheckConstraint(condition=Q(number__gte=1), name="revision_counts_from_one"),
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"

    @property
    def author(self) -> str:
        """The author's name, or the consolidation that wrote it."""
        return author_of(self.author_name, self.run_id)


class Fact(models.Model):
    """A bullet of a document, tracked across revisions. Facts are derived from the document's text.

    A fact exists from revision ``born`` until ``died``; after that it stays searchable. ``corrected``: the revision
    in which a person gave it its present words, if it had others before. ``accepted``: the revision in which a person
    accepted its present words from a proposal by an agent, a file or a run; at most one of the two is set.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="facts")
    document = models.ForeignKey(MemoryDocument, on_delete=models.CASCADE, related_name="facts")
    section = models.TextField(blank=True)
    category = models.CharField(max_length=100, blank=True)
    text = models.TextField()
    line = models.PositiveIntegerField()
    pinned = models.BooleanField(default=False)
    last_verified_at = models.DateTimeField(null=True, blank=True)
    review_by = models.DateField(null=True, blank=True)
    origins_checked_at = models.DateTimeField(null=True, blank=True)
    born = models.ForeignKey(MemoryRevision, on_delete=models.CASCADE, related_name="facts_born")
    died = models.ForeignKey(
        MemoryRevision, null=True, blank=True, on_delete=models.CASCADE, related_name="facts_died"
    )
    corrected = models.ForeignKey(
        MemoryRevision, null=True, blank=True, on_delete=models.SET_NULL, related_name="facts_corrected"
    )
    accepted = models.ForeignKey(
        MemoryRevision, null=True, blank=True, on_delete=models.SET_NULL, related_name="facts_accepted"
    )

    class Meta:
        indexes = [
            models.Index(fields=["document", "died", "line"], name="fact_in_order"),
            models.Index(fields=["workspace", "category"], name="fact_by_category"),
        ]

    def __str__(self) -> str:
        return self.text


class FactSource(models.Model):
    """An origin of a fact: a run, history entry or message, and what connects it with the fact.

    ``learned``: a run of the hub added the fact; its ``entry`` shares most words. ``written_by``: a tool call of
    ``entry`` contains the exact text. ``recorded_with``: the agent's run or history entry of the same time.
    ``probably_from``: ``entry`` matches in a search; ``score`` is the part of the fact's words that it covers, by
    weight, up to 1.
    """

    class Kind(models.TextChoices):
        LEARNED = "learned", _("Learned")
        WRITTEN_BY = "written_by", _("Written by")
        RECORDED_WITH = "recorded_with", _("Recorded with")
        PROBABLY_FROM = "probably_from", _("Probably from")

    fact = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="sources")
    kind = models.CharField(max_length=16, choices=Kind.choices, default=Kind.LEARNED)
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    entry = models.ForeignKey(Entry, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    history_entry = models.ForeignKey(
        "HistoryEntry", null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    score = models.FloatField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(run__isnull=False) | Q(entry__isnull=False) | Q(history_entry__isnull=False),
                name="fact_source_names_one",
            ),
            models.CheckConstraint(
                condition=Q(kind="learned", score=None)
                | Q(kind="written_by", entry__isnull=False, score=None)
                | Q(kind="recorded_with", entry=None, score=None)
                | Q(kind="probably_from", entry__isnull=False, score__isnull=False, score__gt=0, score__lte=1),
                name="fact_source_kind_fits",
            ),
        ]

    def __str__(self) -> str:
        return f"source of fact {self.fact_id}"


def author_of(name: str, run: int | None) -> str:
    """Return the name of an author in the reader's language; texts of runs are by consolidations."""
    return gettext("Consolidation %(number)s") % {"number": run} if run and name == f"run {run}" else name


PROPOSED = "proposed by an agent"
ALL_HELD = "all changes by the agent are held"
REQUESTED = "review was requested"
_GRAVE = (INSTRUCTION, OVERRIDE, ROLE)
RULES = (PROPOSED, ALL_HELD, REQUESTED)  # flags that say why a change is held although nothing was found in it


def _harm(flag: str) -> int:
    """Return 0 for the findings that do the most harm, then others of the content check, then others."""
    code = code_of_check(flag)
    return 2 if code is None else 0 if code in _GRAVE else 1


class HeldChange(models.Model):
    """A proposed text of a document, held for review, with its base and the hub's text at that time.

    ``file_restored_at``: when the agent's file got the hub's text again; since then the change doesn't block it.
    ``decided_parts``: of a change decided in parts, how many were ``accepted``, ``rejected``, and are ``waiting`` as
    another change. ``refused``: the numbers of the lines of ``proposed`` that were refused, also by an edited text.
    """

    class Status(models.TextChoices):
        PENDING = "pending", _("Pending")
        APPROVED = "approved", _("Approved")
        REJECTED = "rejected", _("Rejected")
        SUPERSEDED = "superseded", _("Superseded")

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="held_changes")
    document = models.ForeignKey(MemoryDocument, on_delete=models.CASCADE, related_name="held_changes")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="held_changes")
    base = models.ForeignKey(MemoryRevision, null=True, on_delete=models.PROTECT, related_name="+")
    ours = models.ForeignKey(MemoryRevision, null=True, on_delete=models.PROTECT, related_name="+")
    proposed = models.TextField(blank=True)
    proposed_hash = models.CharField(max_length=64)
    raw = models.BinaryField(null=True, blank=True)
    flags = JSONTextField(default=list, blank=True)
    reason = models.TextField()
    author_kind = models.CharField(max_length=16, choices=AuditRecord.ActorKind.choices)
    author_name = models.CharField(max_length=200)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PENDING)
    created_at = models.DateTimeField(default=timezone.now)
    file_restored_at = models.DateTimeField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    decision_reason = models.TextField(blank=True)
    decided_parts = JSONTextField(default=dict, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["document", "proposed_hash"], condition=Q(status="pending"), name="held_change_once"
            ),
        ]
        indexes = [models.Index(fields=["workspace", "status", "-id"], name="held_change_inbox")]

    def __str__(self) -> str:
        return f"held change {self.pk}"

    @property
    def author(self) -> str:
        """The author's name, or the consolidation that proposed it."""
        return author_of(self.author_name, self.run_id)

    @property
    def proposer(self) -> str:
        """The author as in "Proposed by …"."""
        is_file = self.author_kind == AuditRecord.ActorKind.SYNC
        return gettext("the agent's file") if is_file else self.author

    @property
    def findings(self) -> list[str]:
        """The flags that say what was found in the change, the most harmful first."""
        return sorted((flag for flag in self.flags if flag not in RULES), key=_harm)

    @property
    def is_grave(self) -> bool:
        """Whether it may turn the agent against its people."""
        return any(_harm(flag) == 0 for flag in self.findings)

    @property
    def title(self) -> str:
        """The document with the worst finding. Never the author's own reason, which may be written to mislead."""
        if not self.findings:
            return gettext("Change to %(name)s") % {"name": self.document.name}
        return f"{self.document.name}: {self.findings[0]}"

    @property
    def decision(self) -> str:
        """The status in the reader's language, with the numbers of parts if not all got the same decision."""
        accepted, rejected, waiting = (
            self.decided_parts.get(name, 0) for name in ("accepted", "rejected", "waiting")
        )
        total = accepted + rejected + waiting
        if accepted and accepted < total:
            return gettext("%(count)s of %(total)s parts accepted") % {"count": accepted, "total": total}
        if rejected and rejected < total:
            return gettext("%(count)s of %(total)s parts rejected") % {"count": rejected, "total": total}
        return str(self.get_status_display())

    @property
    def has_own_reason(self) -> bool:
        """Whether its author gave a reason, rather than the hub."""
        return bool(self.reason) and self.reason != "; ".join(self.flags)
