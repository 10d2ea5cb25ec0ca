"""The actions of edits, as pure functions from the values of a row or a group of rows to new values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

from django.db.models import Model
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import KnowledgeEntry

Values = dict[str, Any]
Changes = dict[int, Values | None]  # by primary key: the fields to set, None to remove the row
MAX_COUNT = 2**31 - 1  # of a count column
MAX_TAGS = 50  # of an entry
Change = Callable[[Sequence[Model], Values, datetime], Changes]


def _each(change: Callable[[Any, Values, datetime], Values | None]) -> Change:
    return lambda rows, values, now: {row.pk: change(row, values, now) for row in rows}


def _assign(_row: Any, values: Values, _now: datetime) -> Values:
    return dict(values)


def _tag(row: Any, values: Values, _now: datetime) -> Values:
    """Change tags as ``tags_after`` does. A row that got so many meanwhile that there is no room stays as it is."""
    tags = tags_after(row.tags, values)
    return {"tags": tags} if has_room(row.tags, tags) else {}


def tags_after(tags: Sequence[str], values: Values) -> list[str]:
    """Return tags with those in ``add`` and without those in ``remove``; the others keep their order."""
    kept = [tag for tag in tags if tag not in values.get("remove", [])]
    return kept + [tag for tag in values.get("add", []) if tag not in kept]


def has_room(before: Sequence[str], after: Sequence[str]) -> bool:
    """Tell whether a row may have these tags: at most MAX_TAGS, or as many as it had before."""
    return len(after) <= max(MAX_TAGS, len(before))


def _recategorise(row: Any, values: Values, now: datetime) -> Values:
    """Set the category, and change tags as ``_tag`` does."""
    return {"category": values["category"], **_tag(row, values, now)}


def _withdraw(row: Any, values: Values, now: datetime) -> Values:
    """Withdraw a row; with ``held_only``, leave out those that aren't held any more."""
    if row.withdrawn_at or (values.get("held_only") and not hasattr(row, "hold")):
        return {}
    return {"withdrawn_at": now, "withdrawn_reason": values.get("reason", "")}


def _return(_row: Any, _values: Values, _now: datetime) -> Values:
    return {"withdrawn_at": None, "withdrawn_reason": ""}


def _verify(_row: Any, _values: Values, now: datetime) -> Values:
    return {"last_verified_at": now}


def _review(_row: Any, values: Values, _now: datetime) -> Values:
    return {"review_by": date.fromisoformat(values["review_by"]) if values["review_by"] else None}


def _remove(_row: Any, _values: Values, _now: datetime) -> None:
    return None


def _archive(row: Any, _values: Values, now: datetime) -> Values:
    """Archive a session or a history entry; an archived one keeps its time."""
    if not hasattr(row, "archived_at"):
        return {"is_archived": True}
    return {} if row.archived_at else {"archived_at": now}


def _unarchive(row: Any, _values: Values, _now: datetime) -> Values:
    return {"archived_at": None} if hasattr(row, "archived_at") else {"is_archived": False}


def _pin(row: Any, _values: Values, _now: datetime) -> Values:
    return {} if row.died_id else {"pinned": True}


def _unpin(row: Any, _values: Values, _now: datetime) -> Values:
    return {} if row.died_id else {"pinned": False}


def _merge(rows: Sequence[Any], _values: Values, now: datetime) -> Changes:
    """Merge a group into its first row and withdraw the others."""
    keep, *others = rows
    kept = merged_fields(keep, others) if others else {}
    changes: Changes = {keep.pk: kept}
    for row in others:
        changes[row.pk] = {"withdrawn_at": now, "withdrawn_reason": f"merged into {keep.pk}"}
    return changes


def merged_fields(keep: Any, others: Sequence[Any]) -> Values:
    """Return the values of a row that others are merged into: combined tags and counts, and the oldest date."""
    rows = [keep, *others]
    values: Values = {"access_count": min(MAX_COUNT, sum(row.access_count for row in rows))}
    accessed = [row.accessed_at for row in rows if row.accessed_at]
    values["accessed_at"] = max(accessed, default=None)
    if isinstance(keep, KnowledgeEntry):
        values["tags"] = list(dict.fromkeys(tag for row in rows for tag in row.tags))
        values["created_at"] = min((row.created_at for row in rows if row.created_at), default=None)
        values["source"] = next((row.source for row in rows if row.source), "")
    else:
        values["confirmation_count"] = min(MAX_COUNT, sum(row.confirmation_count for row in rows) + len(others))
    return values


CHANGES: dict[str, Change] = {
    "assign": _each(_assign),
    "tag": _each(_tag),
    "recategorise": _each(_recategorise),
    "withdraw": _each(_withdraw),
    "return": _each(_return),
    "verify": _each(_verify),
    "review": _each(_review),
    "remove": _each(_remove),
    "archive": _each(_archive),
    "unarchive": _each(_unarchive),
    "pin": _each(_pin),
    "unpin": _each(_unpin),
    "merge": _merge,
}
PAST_TENSES = {  # stored in histories and audit texts
    "assign": "changed",
    "tag": "tagged",
    "recategorise": "re-categorised",
    "withdraw": "withdrawn",
    "return": "restored",
    "verify": "marked as verified",
    "review": "given a review date",
    "remove": "removed",
    "archive": "archived",
    "unarchive": "unarchived",
    "pin": "pinned",
    "unpin": "unpinned",
    "merge": "merged",
    "add": "added",
    "compress": "queued for compression",
    "consolidate": "queued for consolidation",
    "prune": "queued for pruning",
    "delete": "permanently deleted",
    "retry": "queued again",
    "dismiss": "dismissed",
    "cancel": "cancelled",
    "undo": "reverted",
}
LABELS: dict[str, Promise | str] = {  # translated, as badges
    "assign": _("Changed"),
    "tag": _("Tagged"),
    "recategorise": _("Re-categorised"),
    "withdraw": _("Withdrawn"),
    "return": _("Restored"),
    "verify": _("Marked as verified"),
    "review": _("Given a review date"),
    "remove": _("Removed"),
    "archive": _("Archived"),
    "unarchive": _("Unarchived"),
    "pin": _("Pinned"),
    "unpin": _("Unpinned"),
    "merge": _("Merged"),
    "add": _("Added"),
    "compress": _("Queued for compression"),
    "consolidate": _("Queued for consolidation"),
    "prune": _("Queued for pruning"),
    "delete": _("Permanently deleted"),
    "retry": _("Queued again"),
    "dismiss": _("Dismissed"),
    "cancel": _("Cancelled"),
    "undo": _("Reverted"),
}
SENTENCES: dict[str, Promise | str] = {  # translated; ``rows`` is the text of ``Table.shown``
    "assign": _("%(rows)s changed."),
    "tag": _("%(rows)s tagged."),
    "recategorise": _("%(rows)s re-categorised."),
    "withdraw": _("%(rows)s withdrawn."),
    "return": _("%(rows)s restored."),
    "verify": _("%(rows)s marked as verified."),
    "review": _("%(rows)s given a review date."),
    "remove": _("%(rows)s removed."),
    "archive": _("%(rows)s archived."),
    "unarchive": _("%(rows)s unarchived."),
    "pin": _("%(rows)s pinned."),
    "unpin": _("%(rows)s unpinned."),
    "merge": _("%(rows)s merged."),
    "add": _("%(rows)s added."),
    "compress": _("%(rows)s queued for compression."),
    "consolidate": _("%(rows)s queued for consolidation."),
    "prune": _("%(rows)s queued for pruning."),
    "delete": _("%(rows)s permanently deleted."),
    "retry": _("%(rows)s queued again."),
    "dismiss": _("%(rows)s dismissed."),
    "cancel": _("%(rows)s cancelled."),
    "undo": _("%(rows)s reverted."),
}
