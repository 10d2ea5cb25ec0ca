"""Approve held rows, or withdraw them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext

from knowledge_app.models import EditedRow, HeldRow, HistoryEntry
from knowledge_app.services.decisions import imports, is_by_person
from knowledge_app.services.documents.history import withdraw_other_versions
from knowledge_app.services.held_rows import LINKS, TEXTS, row_name, text_hash
from knowledge_app.services.rows.edit_tables import TABLES
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Conflict
from sessions_app.models import AuditRecord, Run, Workspace
from sessions_app.services.audit import By, record

REASON = "flagged by the content check"
HELD_ONLY = {"reason": REASON, "held_only": True}


@db_retry.retried
@transaction.atomic
def approve_row(held: HeldRow, *, seen: str = "", by: By) -> AuditRecord:
    """Release a held row, so that agents get it.

    A history entry replaces its earlier versions. ``seen``: the ``text_hash`` of the text that the person approves,
    "" if unknown. The audit record that it returns is what ``undo_approval`` needs. Raises Conflict if the row was
    decided, or its text changed meanwhile.
    """
    row = _locked(held).row
    check_seen(seen, text_hash(row))
    HeldRow.objects.filter(pk=held.pk).delete()
    detail = {"findings": held.findings, "author_kind": held.author_kind, "author_name": held.author_name}
    if isinstance(row, HistoryEntry):
        detail["replaced"] = withdraw_other_versions(row, by.at)
    text = f"{row_name(row)} approved"
    return record(by, "row.approved", LINKS[type(row)], row.pk, text, workspace=held.workspace, detail=detail)


@db_retry.retried
@transaction.atomic
def undo_approval(approval: AuditRecord, *, by: By) -> None:
    """Hold a row again that was approved.

    Raises Conflict if it is held again, withdrawn or deleted, or a person has changed its text since.
    """
    model, link = next((model, link) for model, link in LINKS.items() if link == approval.object_kind)
    rows = model._default_manager.filter(workspace=approval.workspace, withdrawn_at=None, hold=None)
    row = rows.select_for_update(of=("self",)).filter(pk=approval.object_id).first()
    if row is None:
        raise Conflict(gettext("This row was held again, withdrawn or deleted meanwhile."), code="already_decided")
    if _is_retexted(row, approval.at):
        raise Conflict(gettext("Someone has changed this text since it was approved."), code="row_changed")
    detail = approval.detail
    HeldRow.objects.create(
        findings=detail["findings"],
        author_kind=detail.get("author_kind", by.actor.kind),
        author_name=detail.get("author_name", by.actor.name[:200]),
        created_at=by.at,
        **{"workspace_id": approval.workspace_id, f"{link}_id": row.pk},
    )
    HistoryEntry.objects.filter(workspace=approval.workspace, pk__in=detail.get("replaced", [])).update(
        withdrawn_at=None
    )
    record(by, "row.held", link, row.pk, f"Approval of {row_name(row)} undone", workspace=approval.workspace)


def _is_retexted(row: Any, since: datetime) -> bool:
    """Tell whether a person has edited or imported a text of a row since a moment."""
    table = _table_of(type(row))
    edits = EditedRow.objects.filter(run__workspace=row.workspace_id, table=table, object_id=row.pk)
    later = edits.filter(run__created_at__gt=since).values_list("run__options", "before")
    texts = set(TEXTS[type(row)])
    if any(is_by_person(options) and texts & (before or {}).keys() for options, before in later):
        return True
    times = [moment for moment in imports(row.workspace)[table] if moment > since]
    return bool(times) and row.history.filter(history_date__in=times).exists()


@db_retry.retried
@transaction.atomic
def remove_row(held: HeldRow, *, seen: str = "", by: By) -> Run | None:
    """Withdraw a held row; it stays held if somebody restores it.

    Returns the edit, which can be undone; None for a history entry, which can't be edited. ``seen`` and errors: as
    for ``approve_row``.
    """
    row = _locked(held).row
    check_seen(seen, text_hash(row))
    if isinstance(row, HistoryEntry):
        HistoryEntry.objects.filter(pk=row.pk).update(withdrawn_at=by.at)
        text = f"{row_name(row)} withdrawn"
        record(by, "history.withdrawn", "history_entry", row.pk, text, workspace=held.workspace)
        return None
    return edit_rows(held.workspace, _table_of(type(row)), "withdraw", [row.pk], values={"reason": REASON}, by=by)


@db_retry.retried
@transaction.atomic
def remove_rows(workspace: Workspace, *, up_to: int, by: By) -> int:
    """Withdraw the held rows with keys up to ``up_to``; return their number.

    Edits of over 500 rows are queued. They spare the rows that somebody approves in the meantime.
    """
    held = HeldRow.objects.filter(workspace=workspace, pk__lte=up_to).waiting()
    list(HeldRow.objects.select_for_update().filter(pk__in=held.values("pk")).order_by("pk").values_list("pk"))
    count = 0
    for model, link in LINKS.items():
        pks = list(held.exclude(**{link: None}).values_list(link, flat=True))
        count += len(pks)
        if pks and model is HistoryEntry:
            HistoryEntry.objects.filter(pk__in=held.exclude(history_entry=None).values("history_entry")).update(
                withdrawn_at=by.at
            )
            text = f"{len(pks):,} flagged history entries withdrawn"
            record(by, "history.withdrawn", "workspace", workspace.pk, text, workspace=workspace)
        elif pks:
            edit_rows(workspace, _table_of(model), "withdraw", pks, values=HELD_ONLY, by=by)
    return count


def check_seen(seen: str, current: str) -> None:
    """Raise Conflict if what a person has seen isn't what is stored now. Both are hashes; "" is unknown."""
    if seen and seen != current:
        raise Conflict(gettext("This has changed since you opened it. Review it again."), code="row_changed")


def _table_of(model: type[Model]) -> str:
    return next(name for name, table in TABLES.items() if table.model is model)


def _locked(held: HeldRow) -> HeldRow:
    """Return a held row that is locked with the row that it holds. Raises Conflict if it was decided."""
    found = HeldRow.objects.select_for_update().filter(pk=held.pk).first()
    if found is not None:
        type(found.row)._default_manager.select_for_update(of=("self",)).get(pk=found.row.pk)
        found.row.refresh_from_db()
    if found is None or found.row.withdrawn_at is not None:
        raise Conflict(gettext("This has been decided already."), code="already_decided")
    return found
