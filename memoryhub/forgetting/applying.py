"""Apply an erasure to rows, inside the transaction and guard of ``memoryhub.forgetting.erasure``."""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Model

from knowledge_app.models import EditedRow, Fact, MemoryDocument
from knowledge_app.services.documents.revisions import update_facts
from knowledge_app.services.rows.edit_tables import TABLES
from memoryhub.forgetting.rules import Affected
from memoryhub.lib.text.facts import fact_lines
from sessions_app.models import DeletedSession, Run, Session, Workspace
from sessions_app.services.audit import By
from sessions_app.services.lifecycle import delete_session, forgotten_key


def drop_session(session: Session, by: By) -> None:
    """Delete a session and hide its key in the tombstone."""
    tombstone = delete_session(session, confirmation=session.key, reason="", by=by)
    _hide_key(tombstone)


def _hide_key(tombstone: DeletedSession) -> None:
    key = forgotten_key(tombstone.workspace, tombstone.key)
    DeletedSession.objects.filter(workspace=tombstone.workspace, key=key).exclude(pk=tombstone.pk).delete()
    DeletedSession.objects.filter(pk=tombstone.pk).update(key=key, is_forgotten=True)


def stop_runs(workspace: Workspace, now: datetime) -> None:
    """Interrupt running runs, whose input may contain what is erased.

    Each is queued again, or cancelled if another of its kind is queued already.
    """
    for run in Run.objects.select_for_update().filter(workspace=workspace, status=Run.Status.RUNNING):
        run.fencing_number += 1
        run.status, run.not_before, run.stage = Run.Status.QUEUED, now, ""
        run.lease_owner, run.lease_expires_at = "", None
        try:
            with transaction.atomic():
                run.save()
        except IntegrityError:
            run.status, run.finished_at = Run.Status.CANCELLED, now
            run.save()


def apply_change(affected: Affected, by: By) -> None:
    """Delete an affected row, or write its new values."""
    row, values = affected.row, affected.values
    rows = type(row)._base_manager.filter(pk=row.pk)
    if values is None:
        _forget_edits(row)
        rows.delete()
        if hasattr(row, "history"):
            row.history.all().delete()  # including the state that delete() just recorded
        return
    if isinstance(row, DeletedSession) and "key" in values:
        DeletedSession.objects.filter(workspace=row.workspace, key=values["key"]).exclude(pk=row.pk).delete()
    if isinstance(row, Session) and "key" in values:
        _leave_tombstone(row, by)
    rows.update(**values)


def _forget_edits(row: Model) -> None:
    """Remove a deleted row's content from edits: its stored states and the values to write."""
    table = next((name for name, table in TABLES.items() if table.model is type(row)), "")
    if not table:
        return
    edited = EditedRow.objects.filter(table=table, object_id=row.pk)
    for run in Run.objects.filter(pk__in=edited.values("run")):
        Run.objects.filter(pk=run.pk).update(options=run.options | {"values": {}, "reason": ""})
    edited.delete()


def _leave_tombstone(session: Session, by: By) -> None:
    """Keep a session whose key is erased from being imported again."""
    facts = {
        "is_forgotten": True,
        "entry_count": session.entry_count,
        "summary_count": 0,
        "total_tokens": session.total_tokens,
        "content_hash": "",
        "deleted_by": by.actor.name[:200],
        "deleted_at": by.at,
    }
    key = forgotten_key(session.workspace, session.key)
    DeletedSession.objects.update_or_create(workspace=session.workspace, key=key, defaults=facts)


def sync_facts(workspace: Workspace) -> None:
    """Update current facts from the redacted text of their document, line by line."""
    for document in MemoryDocument.objects.filter(workspace=workspace, head__isnull=False).select_related("head"):
        if document.head is None:
            continue
        lines = {line.line: line for line in fact_lines(document.head.content, document.separator)}
        living = list(Fact.objects.filter(document=document, died=None))
        if lines.keys() != {fact.line for fact in living}:
            update_facts(document, document.head)
            continue
        for fact in living:
            line = lines[fact.line]
            fact.section, fact.category, fact.text = line.section, line.category, line.text
        Fact.objects.bulk_update(living, ["section", "category", "text"], batch_size=200)
