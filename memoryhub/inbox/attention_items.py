"""One item that needs attention, and how finders count rows by workspace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, QuerySet
from django.utils.translation import gettext, gettext_lazy

from sessions_app.models import Workspace

LABELS = {  # by kind, the most urgent first
    "secret": gettext_lazy("Secret"),
    "folder": gettext_lazy("Folder"),
    "conflict": gettext_lazy("Conflict"),
    "held": gettext_lazy("Review"),
    "flagged": gettext_lazy("Review"),
    "order": gettext_lazy("Instruction-like"),
    "ahead": gettext_lazy("Sync"),
    "parked": gettext_lazy("Run"),
    "approval": gettext_lazy("Run"),
    "import": gettext_lazy("Import"),
    "waiting": gettext_lazy("Run"),
    "failed": gettext_lazy("Run"),
    "job": gettext_lazy("Work"),
    "webhook": gettext_lazy("Webhook"),
    "budget": gettext_lazy("Budget"),
    "concerns": gettext_lazy("Hygiene"),
    "note": gettext_lazy("Import"),
}
ORDER = tuple(LABELS)
URGENT = ("secret", "folder", "conflict")
NEEDS_DECISION = ("held", "flagged", "order", "ahead", "parked", "approval")
REVIEWED = ("conflict", "held", "flagged", "approval")
DISMISSIBLE = {"import": "import", "note": "import", "job": "job"}
MAX_ITEMS = 200  # workspaces, or import reports, of each kind
RECENT = timedelta(days=7)  # older failures and problems are not shown
Finder = Callable[[QuerySet[Workspace], datetime], "list[AttentionItem]"]


@dataclass(frozen=True)
class AttentionItem:
    """One item that needs attention: a sentence, since when, and the address of the page that resolves it.

    ``kind``: see LABELS. ``slug`` and ``name``: its workspace; no slug outside workspaces. ``since``: the oldest of
    ``count``.
    """

    kind: str
    slug: str
    name: str
    text: str
    url: str
    count: int = 1
    since: datetime | None = None
    pk: int = 0  # if there can be several items of the kind in a workspace

    @property
    def key(self) -> str:
        return "-".join(str(part) for part in (self.kind, self.slug, self.pk) if part)

    @property
    def severity(self) -> str:
        """One of problem (something is wrong), warning (a decision is due) and info."""
        return "problem" if self.kind in URGENT else "warning" if self.kind in NEEDS_DECISION else "info"

    @property
    def label(self) -> str:
        return str(LABELS[self.kind])

    @property
    def action(self) -> str:
        """The label of the link that resolves it."""
        if self.kind == "budget" and self.count == 1:
            return gettext("Compress now")
        return gettext("Review") if self.kind in REVIEWED else gettext("Show")

    @property
    def dismissed_as(self) -> str:
        """The query parameter of ``dismiss`` for its primary key, or "" if it can't be dismissed."""
        return DISMISSIBLE.get(self.kind, "") if self.pk else ""


def attention_item_json(item: AttentionItem) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "severity": item.severity,
        "gravity": item.severity,  # the former name
        "workspace": item.slug or None,
        "text": item.text,
        "count": item.count,
        "since": item.since,
        "url": item.url,
    }


def grouped(rows: QuerySet[Any], *by: str, **figures: Any) -> list[dict[str, Any]]:
    """Count rows by workspace and other fields, with more aggregates, as dictionaries for ``attention_item``."""
    groups = rows.order_by().values("workspace__slug", "workspace__name", *by).annotate(n=Count("pk"), **figures)
    return list(groups.order_by("workspace__name", "workspace__slug", *by)[: MAX_ITEMS * (1 + 5 * bool(by))])


def attention_item(
    kind: str, row: dict[str, Any], text: str, url: str, *, count: int = 1, since: datetime | None
) -> AttentionItem:
    return AttentionItem(kind, row["workspace__slug"], row["workspace__name"], text, url, count, since)
