"""One thing that needs a person, and how finders of such things count rows by workspace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, QuerySet
from django.utils.translation import gettext_lazy

from sessions_app.models import Workspace

LABELS = {  # of each kind, the most urgent first
    "secret": gettext_lazy("Secret"),
    "folder": gettext_lazy("Folder"),
    "conflict": gettext_lazy("Conflict"),
    "held": gettext_lazy("Review"),
    "parked": gettext_lazy("Run"),
    "order": gettext_lazy("Instruction-like"),
    "approval": gettext_lazy("Run"),
    "import": gettext_lazy("Import"),
    "waiting": gettext_lazy("Run"),
    "failed": gettext_lazy("Run"),
    "job": gettext_lazy("Work"),
    "webhook": gettext_lazy("Webhook"),
    "budget": gettext_lazy("Budget"),
    "concerns": gettext_lazy("Hygiene"),
}
ORDER = tuple(LABELS)
URGENT = ("secret", "folder", "conflict")
WAITS_FOR_A_DECISION = ("held", "parked", "order", "approval")
MOST = 200  # workspaces, and reports of imports, that are listed of each kind
RECENT = timedelta(days=7)  # what failed, was decided or left problems longer ago is let be
Finder = Callable[[QuerySet[Workspace], datetime], "list[AttentionItem]"]


@dataclass(frozen=True)
class AttentionItem:
    """One thing that needs a person: a sentence, since when, and the address where it is settled.

    ``kind``: see LABELS. ``slug`` and ``name``: its workspace; no slug for what is of none. ``count``: how many
    such things; ``since``: the oldest of them.
    """

    kind: str
    slug: str
    name: str
    text: str
    url: str
    count: int = 1
    since: datetime | None = None
    pk: int = 0  # of what is one of several in a workspace

    @property
    def key(self) -> str:
        return "-".join(str(part) for part in (self.kind, self.slug, self.pk) if part)

    @property
    def severity(self) -> str:
        """One of problem, warning and info: something is wrong, a decision is due, or it is worth a look."""
        return "problem" if self.kind in URGENT else "warning" if self.kind in WAITS_FOR_A_DECISION else "info"

    @property
    def label(self) -> str:
        return str(LABELS[self.kind])


def attention_item_json(need: AttentionItem) -> dict[str, Any]:
    """Return a need as JSON."""
    return {
        "kind": need.kind,
        "severity": need.severity,
        "gravity": need.severity,  # the former name
        "workspace": need.slug or None,
        "text": need.text,
        "count": need.count,
        "since": need.since,
        "url": need.url,
    }


def grouped(rows: QuerySet[Any], *by: str, **figures: Any) -> list[dict[str, Any]]:
    """Count some rows by workspace and more, with further figures: dictionaries that ``attention_item`` reads."""
    groups = rows.order_by().values("workspace__slug", "workspace__name", *by).annotate(n=Count("pk"), **figures)
    return list(groups.order_by("workspace__name", "workspace__slug", *by)[: MOST * (1 + 5 * bool(by))])


def attention_item(
    kind: str, row: dict[str, Any], text: str, url: str, *, count: int = 1, since: datetime | None
) -> AttentionItem:
    return AttentionItem(kind, row["workspace__slug"], row["workspace__name"], text, url, count, since)
