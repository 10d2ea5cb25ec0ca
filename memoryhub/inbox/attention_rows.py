"""The rows of the attention list: several lesser items of a kind share one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from django.utils.translation import ngettext_lazy

from memoryhub.inbox.attention_items import AttentionItem

SHOWN_ROWS = 8
MIN_GROUP = 3
ALL = "all"
SUMMED = ("failed", "budget", "concerns")  # kinds whose items count rows of a workspace
GROUP_TEXTS = {
    "import": ngettext_lazy("%(count)d import failed.", "%(count)d imports failed.", "count"),
    "failed": ngettext_lazy("%(count)d run failed.", "%(count)d runs failed.", "count"),
    "job": ngettext_lazy("%(count)d job failed.", "%(count)d jobs failed.", "count"),
    "webhook": ngettext_lazy(
        "The last message of %(count)d webhook couldn't be delivered.",
        "The last messages of %(count)d webhooks couldn't be delivered.",
        "count",
    ),
    "budget": ngettext_lazy("%(count)d session is over budget.", "%(count)d sessions are over budget.", "count"),
    "concerns": ngettext_lazy("%(count)d scan finding.", "%(count)d scan findings.", "count"),
    "note": ngettext_lazy("%(count)d import has warnings.", "%(count)d imports have warnings.", "count"),
}


def attention_context(items: Sequence[AttentionItem], params: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of ``includes/attention.html``: the first rows, or all items or those of a kind.

    ``attention_count``: of items, each of which may stand for several of the inbox.
    """
    needs = params.get("needs", "")
    of_kind = [item for item in items if item.kind == needs]
    if needs == ALL or of_kind:
        shown = list(items) if needs == ALL else of_kind
        return _context(shown, items, hidden=len(items) - len(shown))
    rows = _rows(items)
    shown = [row[0] if len(row) == 1 else _merged(row) for row in rows[:SHOWN_ROWS]]
    return _context(shown, items, hidden=sum(len(row) for row in rows[SHOWN_ROWS:]))


def _context(shown: list[AttentionItem], items: Sequence[AttentionItem], *, hidden: int) -> dict[str, Any]:
    return {"attention_items": shown, "attention_count": len(items), "attention_hidden": hidden}


def _rows(items: Sequence[AttentionItem]) -> list[list[AttentionItem]]:
    """Return the items of each row. Conflicts, reviews and the like have one each, since each has its own action."""
    rows: list[list[AttentionItem]] = []
    for kind, found in groupby(items, key=lambda item: item.kind):
        group = list(found)
        rows += [group] if kind in GROUP_TEXTS and len(group) >= MIN_GROUP else [[item] for item in group]
    return rows


def _merged(row: list[AttentionItem]) -> AttentionItem:
    kind = row[0].kind
    count = sum(item.count for item in row) if kind in SUMMED else len(row)
    since = min((item.since for item in row if item.since), default=None)
    text = str(GROUP_TEXTS[kind] % {"count": count})
    return AttentionItem(kind, "", "", text, f"?needs={kind}#needs-you", count, since)
