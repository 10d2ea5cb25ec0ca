"""Apply an erasure to rows, inside the transaction and guard of ``memoryhub.forgetting.erasure``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from itertools import chain
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from knowledge_app.models import Concern, EditedRow, Fact, HeldChange, MemoryDocument
from knowledge_app.services.documents.change_review import give_way, pending_with
from knowledge_app.services.documents.revisions import update_facts
from knowledge_app.services.rows.edit_tables import TABLES
from memoryhub.forgetting.rules import Affected, base_of
from memoryhub.lib.text.facts import fact_lines
from sessions_app.models import DeletedSession, Entry, Run, Session, Workspace
from sessions_app.models.runs import UNSETTLED_STATUSES
from sessions_app.services.audit import By
from sessions_app.services.lifecycle import delete_session, forgotten_key

BATCH_ROWS = 500
Place = tuple[str, int]  # a table of edits, and the primary key of a row


def drop_session(session: Session, by: By) -> None:
    """Delete a session and hide its key in the tombstone."""
    forget_concerns(session.workspace, "entries", Entry.objects.filter(session=session).values("pk"))
    place = ("sessions", session.pk)
    tombstone = delete_session(session, confirmation=session.key, reason="", by=by)
    _hide_key(tombstone)
    forget_edits(tombstone.workspace, [place], by.at)


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
        rows.delete()
        if hasattr(row, "history"):
            row.history.all().delete()  # including the state that delete() just recorded
        return
    if isinstance(row, DeletedSession) and "key" in values:
        DeletedSession.objects.filter(workspace=row.workspace, key=values["key"]).exclude(pk=row.pk).delete()
    if isinstance(row, Session) and "key" in values:
        _leave_tombstone(row, by)
    if isinstance(row, HeldChange) and "proposed_hash" in values and row.status == HeldChange.Status.PENDING:
        _supersede_later(row, values["proposed_hash"], by)
    rows.update(**values)


def _supersede_later(change: HeldChange, new_hash: str, by: By) -> None:
    """Of two pending changes that become equal, supersede the later one."""
    same = pending_with(change.document, new_hash)
    if same is not None and same.pk != change.pk:
        give_way(max(same, change, key=lambda one: one.pk), by=by)


def deleted_rows(found: Iterable[Affected]) -> set[Place]:
    """Return the rows that a walk deletes, and those that were gone already and whose earlier states it deletes."""
    places = set()
    for affected in found:
        row, model = affected.row, base_of(affected.row)
        table = next((name for name, table in TABLES.items() if table.model is model), "")
        if table and affected.values is None:
            places.add((table, row.pk if model is type(row) else int(row.id)))  # type: ignore[attr-defined]
    return places


def forget_edits(workspace: Workspace, places: Iterable[Place], now: datetime) -> None:
    """Remove what edits, proposals and findings contain of deleted rows; proposals that waited are cancelled."""
    by_table = defaultdict(list)
    for table, pk in sorted(set(places)):
        by_table[table].append(pk)
    gone: dict[str, set[int]] = {}
    edited: set[int] = set()
    for table, pks in by_table.items():
        gone[table] = set(pks)
        for start in range(0, len(pks), BATCH_ROWS):
            batch = pks[start : start + BATCH_ROWS]
            gone[table] -= set(TABLES[table].model._base_manager.filter(pk__in=batch).values_list("pk", flat=True))
            edited |= _forget_states(workspace, table, gone[table].intersection(batch))
    for run in Run.objects.filter(workspace=workspace, kind=Run.Kind.EDIT).iterator(chunk_size=BATCH_ROWS):
        units = run.options.get("units", ())
        is_over = bool(units) and gone.get(run.options["table"], set()).issuperset(chain(*units))
        if run.pk in edited or is_over:
            _empty_edit(run, now, is_over=is_over)


def _forget_states(workspace: Workspace, table: str, gone: Collection[int]) -> set[int]:
    """Delete the states of rows that edits keep, and the findings about them; return the edits."""
    forget_concerns(workspace, table, gone)
    states = EditedRow.objects.filter(run__workspace=workspace, table=table, object_id__in=gone)
    runs = set(states.values_list("run", flat=True))
    states.delete()
    return runs


def _empty_edit(run: Run, now: datetime, *, is_over: bool) -> None:
    """Remove the values and reasons of an edit. ``is_over``: all its rows are gone, so it can't be carried out."""
    run.options |= {"values": {}, "reason": ""}
    run.proposal = {name: item for name, item in run.proposal.items() if name not in ("base", "reason")}
    if is_over and run.status in UNSETTLED_STATUSES:
        run.status, run.finished_at = Run.Status.CANCELLED, now
        run.proposal["superseded"] = True  # nobody rejected it
    run.save(update_fields=["options", "proposal", "status", "finished_at"])


def forget_concerns(workspace: Workspace, table: str, pks: Collection[int] | QuerySet[Any]) -> None:
    """Delete the findings about deleted rows of a table."""
    about = Q(table=table, object_id__in=pks) | Q(other_table=table, other_id__in=pks)
    Concern.objects.filter(about, workspace=workspace).delete()


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
