"""Sessions, entries, summaries and daily totals."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.database.fields import JSONTextField
from memoryhub.lib.masked_text import masked
from sessions_app.models.workspaces import Workspace
from sessions_app.querysets import OWN_CHANNELS, EntryQuerySet, SessionQuerySet

KEY_LENGTH = 512  # characters; fits into a PostgreSQL index row in any script


def channel_of(key: str) -> str:
    """Return the channel of a session: the part of its key before a colon, or the third part of ``agent:<id>:…``."""
    first, colon, rest = key.partition(":")
    if first == "agent" and ":" in rest:  # OpenClaw's keys: agent:main:telegram:group:42
        return rest.split(":")[1]
    return first if colon else ""


class Session(models.Model):
    """One conversation. ``epoch``: the current one; ``last_consolidated``: the pointer in it.

    ``next_position``: the number of entries in the current epoch. Totals count all epochs; active figures count
    entries in the context (current epoch, from the pointer on, without a summary, in the conversation). Archived
    sessions are only hidden from lists.

    ``parent``: the session whose tool call ``parent_call_id`` started this one as a subagent. ``missing_since``:
    since when the agent's files lack the session, or some of its entries.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="sessions")
    key = models.CharField(max_length=KEY_LENGTH)
    channel = models.CharField(max_length=KEY_LENGTH)
    title = models.TextField(blank=True)
    summary_text = models.TextField(blank=True)
    epoch = models.PositiveIntegerField(default=0)
    last_consolidated = models.PositiveIntegerField(default=0)
    next_position = models.PositiveIntegerField(default=0)
    entry_count = models.PositiveIntegerField(default=0)
    active_entry_count = models.PositiveIntegerField(default=0)
    total_tokens = models.PositiveBigIntegerField(default=0)
    active_tokens = models.PositiveBigIntegerField(default=0)
    summary_tokens = models.PositiveBigIntegerField(default=0)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="subagents")
    parent_call_id = models.CharField(max_length=KEY_LENGTH, blank=True, default="", db_default="")
    forked_from = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="forks")
    missing_since = models.DateTimeField(null=True, blank=True)
    is_visible_to_agent = models.BooleanField(default=True)
    note = models.TextField(blank=True)
    extra = JSONTextField(default=dict, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    objects = SessionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "key"], name="session_key_once"),
            models.CheckConstraint(
                condition=Q(active_entry_count__lte=F("entry_count")), name="session_active_within_all"
            ),
            models.CheckConstraint(
                condition=Q(last_consolidated__lte=F("entry_count")), name="session_pointer_in_range"
            ),
            models.CheckConstraint(condition=Q(next_position__lte=F("entry_count")), name="session_epoch_within_all"),
        ]
        indexes = [
            models.Index(fields=["workspace", "-updated_at", "-id"], name="session_recent"),
            models.Index(fields=["workspace", "-entry_count", "-id"], name="session_longest"),
            models.Index(fields=["workspace", "-total_tokens", "-id"], name="session_heaviest"),
            models.Index(fields=["workspace", "channel", "-updated_at", "-id"], name="session_by_channel"),
            models.Index(fields=["workspace", "archived_at"], name="session_in_use"),  # counted on every page
            models.Index(  # this and the next find the sessions over their workspace's limits, for every page
                "workspace",
                F("active_tokens") + F("summary_tokens"),
                condition=Q(archived_at=None),
                name="session_by_context",
            ),
            models.Index(
                fields=["workspace", "active_entry_count"],
                condition=Q(archived_at=None),
                name="session_by_active_entries",
            ),
        ]

    def __str__(self) -> str:
        """Return the title, with secrets masked, or the key."""
        return masked(self.title) or self.key

    @property
    def is_own(self) -> bool:
        """Whether the agent's program started the session itself (see ``of_own_sessions``)."""
        return self.channel in OWN_CHANNELS or self.key == "heartbeat"


class AppendReceipt(models.Model):
    """An acknowledged append with an idempotency key: the positions of its entries and a hash of the request."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="append_receipts")
    idempotency_key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    epoch = models.PositiveIntegerField()
    first_position = models.PositiveIntegerField()
    entry_count = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "idempotency_key"], name="append_receipt_key_once")]

    def __str__(self) -> str:
        return self.idempotency_key


class DeletedSession(models.Model):
    """The tombstone of a deleted session, which keeps imports from restoring it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="deleted_sessions")
    key = models.CharField(max_length=KEY_LENGTH)
    is_forgotten = models.BooleanField(default=False)  # then ``key`` is a keyed hash of the key
    entry_count = models.PositiveIntegerField()
    summary_count = models.PositiveIntegerField()
    total_tokens = models.PositiveBigIntegerField()
    content_hash = models.CharField(max_length=64)  # over the entries' source hashes in order
    digests = models.BinaryField(default=b"")  # of its records with ids, 8 bytes each, which forks repeat
    deleted_by = models.CharField(max_length=200)
    reason = models.TextField(blank=True)
    deleted_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "key"], name="deleted_session_key_once")]

    def __str__(self) -> str:
        return self.key


class Summary(models.Model):
    """A summary of consecutive entries, which are kept. ``parent``: a later summary that includes this one."""

    class Method(models.TextChoices):
        LLM = "llm", _("by a model")
        HEURISTIC = "heuristic", _("heuristic")
        IMPORTED = "imported", _("imported")

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="summaries")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="summaries")
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children")
    epoch = models.PositiveIntegerField(default=0)
    content = models.TextField()
    method = models.CharField(max_length=16, choices=Method.choices)
    model = models.CharField(max_length=200, blank=True)
    token_count = models.PositiveIntegerField()
    original_token_count = models.PositiveBigIntegerField()
    entry_count = models.PositiveIntegerField()
    first_position = models.PositiveIntegerField()
    last_position = models.PositiveIntegerField()
    starts_at = models.DateTimeField(null=True, blank=True)
    ends_at = models.DateTimeField(null=True, blank=True)
    source_id = models.CharField(max_length=KEY_LENGTH, blank=True)
    run = models.ForeignKey(
        "sessions_app.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="summaries"
    )
    extra = JSONTextField(default=dict, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "summaries"
        constraints = [
            models.CheckConstraint(
                condition=Q(first_position__lte=F("last_position")), name="summary_range_in_order"
            ),
        ]
        indexes = [models.Index(fields=["session", "epoch", "first_position"], name="summary_by_place")]

    def __str__(self) -> str:
        return f"summary of entries {self.first_position} to {self.last_position}"


class Entry(models.Model):
    """A message, tool call, tool result or context, at a gap-free position in its epoch. Append-only.

    Database triggers allow only the link to a summary and ``is_rewound`` to change. ``extra`` and ``source_fields``
    restore the source record exactly (see ``memoryhub.lib.layouts.records``). ``is_injected``: added by the agent's
    program, not said by anyone. ``is_rewound``: on a branch that was left, or replaced by a later version.
    """

    class Kind(models.TextChoices):
        MESSAGE = "message", _("message")
        TOOL_CALL = "tool_call", _("tool call")
        TOOL_RESULT = "tool_result", _("tool result")
        CONTEXT = "context", _("context")
        SUMMARY = "summary", _("summary")

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="entries")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="entries")
    epoch = models.PositiveIntegerField(default=0)
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=16, choices=Kind.choices)
    role = models.CharField(max_length=32)
    content = models.TextField(blank=True)
    name = models.TextField(blank=True)
    tool_call_id = models.CharField(max_length=KEY_LENGTH, blank=True)
    tool_calls = JSONTextField(default=list, blank=True)
    token_count = models.PositiveIntegerField()
    token_method = models.CharField(max_length=24, default="estimate")  # or an encoding's name, or "source"
    occurred_at = models.DateTimeField(null=True, blank=True)
    occurred_at_text = models.TextField(blank=True)
    source_id = models.CharField(max_length=KEY_LENGTH, blank=True)
    source_hash = models.CharField(max_length=64)
    source_fields = JSONTextField(default=list, blank=True)
    extra = JSONTextField(default=dict, blank=True)
    summary = models.ForeignKey(Summary, null=True, blank=True, on_delete=models.PROTECT, related_name="entries")
    is_injected = models.BooleanField(default=False, db_default=False)
    is_rewound = models.BooleanField(default=False, db_default=False)
    recorded_at = models.DateTimeField(default=timezone.now)

    objects = EntryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "entries"
        constraints = [
            models.UniqueConstraint(fields=["session", "epoch", "position"], name="entry_position_once"),
            models.CheckConstraint(
                condition=Q(kind__in=["message", "tool_call", "tool_result", "context", "summary"]),
                name="entry_kind_known",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="entry_latest"),
            models.Index(fields=["workspace", "occurred_at"], name="entry_by_time"),
            models.Index(fields=["session", "tool_call_id"], condition=~Q(tool_call_id=""), name="entry_tool_result"),
            models.Index(fields=["workspace", "source_id"], condition=~Q(source_id=""), name="entry_by_source_id"),
        ]

    def __str__(self) -> str:
        return f"entry {self.position}"


class DailyTotal(models.Model):
    """Entries and tokens by day and kind, of a session or (session null) of some of a workspace's sessions.

    A workspace's totals are the sums of its rows, each for the sessions of one ``part`` (see ``totals._part_of``), so
    that appends needn't wait for each other. Maintained by the services that write entries, so that charts don't scan
    them. ``day`` is in UTC; entries without a time count on the day their session was last written.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="daily_totals")
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="daily_totals")
    day = models.DateField()
    kind = models.CharField(max_length=16, choices=Entry.Kind.choices)
    part = models.PositiveSmallIntegerField(default=0, db_default=0)
    entry_count = models.PositiveIntegerField()
    token_count = models.PositiveBigIntegerField()
    active_token_count = models.PositiveBigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session", "day", "kind"], condition=Q(session__isnull=False), name="daily_session_once"
            ),
            models.UniqueConstraint(
                fields=["workspace", "day", "kind", "part"],
                condition=Q(session__isnull=True),
                name="daily_workspace_part_once",
            ),
            models.CheckConstraint(
                condition=Q(active_token_count__lte=F("token_count")), name="daily_active_within_all"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.kind}"
