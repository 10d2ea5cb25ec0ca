"""Approve held rows, or withdraw them."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext

from knowledge_app.models import HeldRow, HistoryEntry
from knowledge_app.services.held_rows import LINKS, row_name
from knowledge_app.services.rows.edit_tables import TABLES
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.lib import db_retry
from memoryhub.lib.errors import Conflict
from sessions_app.models import Run
from sessions_app.services.audit import By, record

REASON = "flagged by the content check"


@db_retry.retried
@transaction.atomic
def approve_row(held: HeldRow, *, by: By) -> None:
    """Release a held row, so that agents get it. Raises Conflict if it was decided meanwhile."""
    row = _locked(held).row
    HeldRow.objects.filter(pk=held.pk).delete()
    detail = {"findings": held.findings}
    text = f"{row_name(row)} approved"
    record(by, "row.approved", LINKS[type(row)], row.pk, text, workspace=held.workspace, detail=detail)


@db_retry.retried
@transaction.atomic
def remove_row(held: HeldRow, *, by: By) -> Run | None:
    """Withdraw a held row; it stays held if somebody restores it. Raises Conflict if it was decided meanwhile.

    Returns the edit, which can be undone; None for a history entry, which can't be edited.
    """
    row = _locked(held).row
    if isinstance(row, HistoryEntry):
        HistoryEntry.objects.filter(pk=row.pk).update(withdrawn_at=by.at)
        text = f"{row_name(row)} withdrawn"
        record(by, "history.withdrawn", "history_entry", row.pk, text, workspace=held.workspace)
        return None
    table = next(name for name, table in TABLES.items() if table.model is type(row))
    return edit_rows(held.workspace, table, "withdraw", [row.pk], values={"reason": REASON}, by=by)


def _locked(held: HeldRow) -> HeldRow:
    found = HeldRow.objects.select_for_update().filter(pk=held.pk).first()
    if found is None or found.row.withdrawn_at is not None:
        raise Conflict(gettext("This has been decided already."), code="already_decided")
    return found
