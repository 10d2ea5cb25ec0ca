"""What an edit changed, row by row, for its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import EditedRow, KeyValue
from knowledge_app.services.rows.edit_tables import TABLES
from knowledge_app.services.rows.row_changes import LABELS
from knowledge_app.services.rows.undoable_edits import BROKEN_OFF, is_final
from memoryhub.lib.secrets import looks_secret
from sessions_app.models import Run

MAX_ROWS = 50
MAX_LABEL_CHARS = 200
PAGES = {
    "knowledge": "knowledge:knowledge-entry",
    "observations": "knowledge:observation",
    "key_values": "knowledge:key-value",
    "cached": "knowledge:cached-response",
    "sessions": "sessions:detail",
    "runs": "run",
    "facts": "documents:edit-fact",
}
DERIVED = ("identity", "corrected", "is_secret")
COLUMNS: dict[str, Promise | str] = {
    "content": _("Content"),
    "value": _("Value"),
    "category": _("Category"),
    "tags": _("Tags"),
    "source": _("Source"),
    "pinned": _("Pinned"),
    "review_by": _("Review by"),
    "last_verified_at": _("Last verified at"),
    "withdrawn_at": _("Withdrawn at"),
    "withdrawn_reason": _("Withdrawn reason"),
    "archived_at": _("Archived at"),
    "is_archived": _("Is archived"),
    "created_at": _("Created at"),
    "occurred_at": _("Occurred at"),
    "accessed_at": _("Accessed at"),
    "access_count": _("Access count"),
    "confirmation_count": _("Confirmation count"),
    "status": _("Status"),
}
MASK = "••••••••"
REDO = "?redo=1"  # of the URL that undoes an undo: its button says so


@dataclass(frozen=True)
class ChangedRow:
    """A changed row: its page ("" if it is gone), its label, and its changes as (field, before, after)."""

    url: str
    label: str
    changes: list[tuple[str, str, str]]


def edit_context(run: Run) -> dict[str, Any]:
    """Return the figures of an edit and its first fifty rows."""
    table, action = TABLES[run.options["table"]], run.options["action"]
    edited = list(EditedRow.objects.filter(run=run).order_by("id")[: MAX_ROWS + 1]) or _proposed(run)
    rows = table.model._default_manager.in_bulk([row.object_id for row in edited])
    changed = run.proposal.get("changed") or run.edited_rows.count()
    is_over = run.status == Run.Status.DONE or run.status in BROKEN_OFF
    return {
        "label": LABELS[action],
        "many": table.many,
        "total": edit_size(run),
        "changed": changed,
        "is_broken_off": run.status in BROKEN_OFF,
        "is_final": is_final(run),
        "is_undo": is_undo(run),
        "may_undo": bool(changed) and is_over and not is_final(run),
        "of": run.options.get("of"),
        "rows": [_changed_row(run, row, rows.get(row.object_id)) for row in edited[:MAX_ROWS]],
        "has_more": len(edited) > MAX_ROWS,
    }


def _proposed(run: Run) -> list[EditedRow]:
    """Return the row that a held edit would change."""
    if run.status != Run.Status.HELD:
        return []
    before, values = run.proposal.get("base", {}), run.options["values"]
    after = {name: values[name] for name in before if name in values}
    return [EditedRow(run=run, table=run.options["table"], object_id=edit_pk(run), before=before, after=after)]


def is_undo(run: Run) -> bool:
    """Tell whether an edit undid another one; undoing it is redoing the other."""
    of = run.options.get("of")
    return bool(of) and not is_undo(Run.objects.only("options").get(pk=of))


def edit_pk(run: Run) -> int:
    """Return the first row of an edit."""
    return int(run.options["units"][0][0])


def edit_size(run: Run) -> int:
    """Return the number of rows that an edit was requested for."""
    return sum(len(unit) for unit in run.options["units"])


def _changed_row(run: Run, edited: EditedRow, row: Any) -> ChangedRow:
    page = PAGES.get(edited.table)
    is_live = row is not None and getattr(row, "died_id", None) is None
    url = reverse(page, args=[run.workspace.slug, edited.object_id]) if page and is_live else ""
    gone = (edited.before or edited.after or {}).get("preview")
    number = gettext("number %(number)s") % {"number": edited.object_id}
    label = str(row) if row is not None else str(gone or number)
    before, after = edited.before or {}, edited.after or {}
    names = [name for name in before if name in after and name not in DERIVED]
    display = _display_whole if run.status == Run.Status.HELD else _display
    changes = [
        (_column(name), display(edited, name, before[name]), display(edited, name, after[name])) for name in names
    ]
    return ChangedRow(url, label[:MAX_LABEL_CHARS], changes)


def _column(name: str) -> str:
    return str(COLUMNS.get(name, name.replace("_", " ").capitalize()))


def _display(edited: EditedRow, name: str, value: Any) -> str:
    """Return a value as text, cut. Key-values may be secrets, so they are masked."""
    if edited.table == "key_values" and name == "value":
        return MASK
    text = _text(value)
    return text if len(text) <= MAX_LABEL_CHARS else f"{text[:MAX_LABEL_CHARS]}…"


def _display_whole(edited: EditedRow, name: str, value: Any) -> str:
    """Return a value that a person decides about as text. Key-values are masked if they look like secrets."""
    if edited.table == "key_values" and name == "value":
        row = KeyValue.objects.filter(pk=edited.object_id).first()
        return MASK if row is None or row.is_secret or looks_secret(row.key, value) else _text(value)
    return _text(value)


def _text(value: Any) -> str:
    if value is None or value in ("", []):
        return "—"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
