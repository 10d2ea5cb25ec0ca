"""Rows held back by the content check."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from knowledge_app.models.history import HistoryEntry
from knowledge_app.models.knowledge import KeyValue, KnowledgeEntry, Observation
from memoryhub.lib.database.fields import JSONTextField
from sessions_app.models import AuditRecord, Workspace

REASONS = {  # by code of the content check
    "instruction": _("looks like an instruction to a model"),
    "override": _("tries to override instructions or safeguards"),
    "role": _("imitates a system message or a role of the conversation"),
    "encoded": _("contains encoded text"),
    "disguised": _("is written with disguised letters"),
    "invisible": _("contains invisible characters"),
    "comment": _("contains a comment that isn't displayed"),
    "html": _("contains HTML"),
    "image": _("contains an image"),
    "link": _("contains a link to another site"),
    "too_long": _("is too long to be checked"),
}
FIELDS = {"content": _("Content"), "source": _("Source"), "tags": _("Tags"), "key": _("Key"), "value": _("Value")}
LINKS = ("knowledge", "observation", "key_value", "history_entry")


class HeldRowQuerySet(models.QuerySet["HeldRow"]):
    def waiting(self) -> HeldRowQuerySet:
        """Rows that wait for a decision; withdrawn ones don't."""
        return self.filter(**{f"{name}__withdrawn_at": None for name in LINKS})


class HeldRow(models.Model):
    """A row that an agent wrote and the content check flagged. Agents don't get it until a person approves it.

    ``findings``: see ``knowledge_app.services.held_rows``. They contain no text of the row.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="held_rows")
    knowledge = models.OneToOneField(
        KnowledgeEntry, null=True, blank=True, on_delete=models.CASCADE, related_name="hold"
    )
    observation = models.OneToOneField(
        Observation, null=True, blank=True, on_delete=models.CASCADE, related_name="hold"
    )
    key_value = models.OneToOneField(KeyValue, null=True, blank=True, on_delete=models.CASCADE, related_name="hold")
    history_entry = models.OneToOneField(
        HistoryEntry, null=True, blank=True, on_delete=models.CASCADE, related_name="hold"
    )
    findings = JSONTextField(default=list)
    author_kind = models.CharField(max_length=16, choices=AuditRecord.ActorKind.choices)
    author_name = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)

    objects = HeldRowQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(knowledge__isnull=False)
                | Q(observation__isnull=False)
                | Q(key_value__isnull=False)
                | Q(history_entry__isnull=False),
                name="held_row_names_one",
            )
        ]
        indexes = [models.Index(fields=["workspace", "-id"], name="held_row_inbox")]

    def __str__(self) -> str:
        return f"held row {self.pk}"

    @property
    def row(self) -> KnowledgeEntry | Observation | KeyValue | HistoryEntry:
        """The row itself."""
        found = self.knowledge or self.observation or self.key_value or self.history_entry
        assert found is not None  # by the constraint  # noqa: S101
        return found

    @property
    def reasons(self) -> list[str]:
        """The reasons for the hold in the reader's language, each once."""
        return list(dict.fromkeys(str(REASONS[one["code"]]) for one in self.findings))

    @property
    def shown_findings(self) -> list[tuple[str, int, str]]:
        """Field, line and reason of each finding in the reader's language."""
        return [(str(FIELDS[one["field"]]), one["line"], str(REASONS[one["code"]])) for one in self.findings]
