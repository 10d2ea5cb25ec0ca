"""Undo decisions on held changes: the document gets its former text back, and the change waits again."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext

from knowledge_app.models import HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.change_review import supersede
from knowledge_app.services.documents.consolidation import undo_consolidation
from knowledge_app.services.documents.outside_edits import SYNC
from knowledge_app.services.documents.revisions import lock_document, restore_facts, revise_document
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Conflict
from sessions_app.models import AuditRecord, Run
from sessions_app.services.audit import By, record
from sessions_app.services.runs import hold_run_again

DECIDED = (HeldChange.Status.APPROVED, HeldChange.Status.REJECTED)


@db_retry.retried
@transaction.atomic
def undo_decision(change: HeldChange, *, by: By) -> None:
    """Undo the approval or rejection of a held change. Raises Conflict or RunNotFitting if it can't.

    An approved text is undone by a new revision, unless the document has changed since.
    """
    document = lock_document(change.document_id)
    change = HeldChange.objects.select_for_update(of=("self",)).select_related("run", "ours").get(pk=change.pk)
    run, decided_at = change.run, change.decided_at
    if change.status not in DECIDED or decided_at is None:
        raise _refusal(gettext("This change has no decision that can be undone."))
    _withdraw_rest(change, decided_at, by)
    if run and run.finished_at == decided_at and run.status == Run.Status.CANCELLED:
        hold_run_again(run, run.proposal, by=by)
    elif run and run.finished_at == decided_at and run.status == Run.Status.DONE:
        undo_consolidation(run, by=by)
        hold_run_again(run, run.proposal.get("held", {}), by=by)
    elif change.status == HeldChange.Status.APPROVED:
        _restore_text(change, document, decided_at, by)
    _reopen(change, by)


def _withdraw_rest(change: HeldChange, decided_at: datetime, by: By) -> None:
    """Supersede the change with the parts that weren't decided, if there is one. Raises Conflict."""
    later = HeldChange.objects.filter(document=change.document_id, pk__gt=change.pk)
    pks = [str(pk) for pk in later.values_list("pk", flat=True)]
    records = AuditRecord.objects.filter(object_kind="held_change", object_id__in=pks, action="change.held")
    held = [int(pk) for pk in records.filter(at=decided_at).values_list("object_id", flat=True)]
    rest = later.filter(pk__in=held)
    if rest.exclude(status__in=(HeldChange.Status.PENDING, HeldChange.Status.SUPERSEDED)).exists():
        raise _refusal(gettext("Other parts of this change have been decided since. Undo that first."))
    supersede(rest, by=by)


def _restore_text(change: HeldChange, document: MemoryDocument, decided_at: datetime, by: By) -> None:
    """Restore the text before the approval. Raises Conflict if the document has changed since."""
    since = change.ours.number if change.ours else 0
    revisions = document.revisions.select_related("base").filter(number__gt=since, created_at=decided_at)
    made = list(revisions.order_by("number"))
    if not made or document.head is None:
        raise _refusal(gettext("The approval didn't change the document."))
    if document.head.content != made[-1].content:
        words = gettext("Revision %(number)s has changed %(document)s since. Restore an earlier revision instead.")
        raise _refusal(words % {"number": document.head.number, "document": document.name})
    before: MemoryRevision | None = made[0].base
    raw = bytes(before.raw) if before and before.raw is not None else None
    text = before.content if before else ""
    reason = f"undo of the approval of change {change.pk}"
    revision = revise_document(document, text, base=document.head, by=by, reason=reason, raw=raw)
    restore_facts(revision, died=made)


def _reopen(change: HeldChange, by: By) -> None:
    """Let a change wait for a decision again, with the text of its file where the file still has it."""
    document = MemoryDocument.objects.select_related("synced_revision").get(pk=change.document_id)
    same = HeldChange.objects.filter(
        document=document, status=HeldChange.Status.PENDING, proposed_hash=change.proposed_hash
    )
    if same.exists():
        raise _refusal(gettext("The same change has been proposed again and waits in the inbox."))
    if (change.author_kind, change.author_name) == (SYNC.kind, SYNC.name) and change.file_restored_at is None:
        if document.synced_revision and document.synced_revision.content == change.proposed:
            MemoryDocument.objects.filter(pk=document.pk).update(synced_revision=change.base_id)
        else:
            change.file_restored_at = by.at
    verb = change.status
    change.status, change.decided_at, change.decided_by, change.decision_reason = "pending", None, None, ""
    change.decided_parts = {}
    change.save()
    record(
        by,
        "change.reopened",
        "held_change",
        change.pk,
        f"{document.name}: change {change.pk} is no longer {verb}",
        workspace=change.workspace,
        after_hash=change.proposed_hash,
    )


def _refusal(words: str) -> Conflict:
    return Conflict(words, code="cannot_undo")
