"""Decide whether a person must review a change of a memory document, and hold it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import QuerySet

from knowledge_app.models import Fact, HeldChange, MemoryDocument
from knowledge_app.models.documents import ALL_HELD
from knowledge_app.services.documents.revisions import content_hash
from knowledge_app.services.removed_texts import RemovedTexts
from memoryhub.lib.text.change_guard import CheckedChange, additions_only, pin_reasons, review_reasons, safety_reasons
from memoryhub.lib.text.facts import fact_lines
from sessions_app.models import AuditRecord, Run, Session, Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.runs import cancel_run


def judge(
    document: MemoryDocument,
    change: CheckedChange,
    *,
    by: By | None = None,
    is_own_fact: bool = False,
    returned: Collection[int] | None = None,
) -> list[str]:
    """Return the reasons why a person must review a change of a document, if any.

    ``by``: who makes it, if the workspace may hold all changes of theirs. ``is_own_fact``: it changes nothing but a
    fact that the agent wrote, so that only its safety counts. ``returned``: the new lines with facts that people
    removed, if they are known.
    """
    pinned = pinned_lines(document, change.before)
    if returned is None:
        returned = RemovedTexts(document.workspace, document=document).added_again(change.before, change.after)
    again = [returned_reason(len(returned))] if returned else []
    if is_own_fact:
        reasons = pin_reasons(change.before, change.after, pinned) + safety_reasons(change)
    else:
        reasons = review_reasons(change, pinned=pinned, lost_before=facts_lost_since_review(document))
    return reasons + again or _policy_reasons(document, by)


def _policy_reasons(document: MemoryDocument, by: By | None) -> list[str]:
    is_agent = by is not None and by.actor.kind == AuditRecord.ActorKind.AGENT
    return [ALL_HELD] if is_agent and document.workspace.agent_changes == Workspace.AgentChanges.HOLD_ALL else []


def returned_reason(count: int) -> str:
    if count == 1:
        return "1 new fact was removed or corrected earlier"
    return f"{count} new facts were removed or corrected earlier"


def pinned_facts(document: MemoryDocument | None) -> QuerySet[Fact]:
    """Return the facts of a document's head that agents can't change."""
    return Fact.objects.filter(document=document, died=None, pinned=True)


def pinned_lines(document: MemoryDocument | None, text: str) -> list[int]:
    """Return the line numbers of the facts in a document's current or earlier text that are pinned now."""
    facts = list(pinned_facts(document))
    if document is None or document.head is None or not facts:
        return []
    if text == document.head.content:
        return [fact.line for fact in facts]
    pinned = {fact.text for fact in facts}
    return [line.line for line in fact_lines(text, document.separator) if line.text in pinned]


def additions(document: MemoryDocument, change: CheckedChange, *, held: Collection[int]) -> str:
    """Return what ``additions_only`` does; the old text if a new heading would change what a pinned fact says."""
    text = additions_only(change, held=held)
    return change.before if pin_reasons(change.before, text, pinned_lines(document, change.before)) else text


def facts_lost_since_review(document: MemoryDocument) -> int:
    """Return how many facts runs and files removed since a person last edited the document or reviewed a change."""
    looked = (
        document.revisions.filter(author_kind="person").order_by("-number").values_list("number", flat=True).first()
    )
    by_person = (HeldChange.Status.APPROVED, HeldChange.Status.REJECTED)
    decided = HeldChange.objects.filter(document=document, status__in=by_person).order_by("-decided_at").first()
    gone = Fact.objects.filter(document=document, died__isnull=False).exclude(died__author_kind="person")
    if looked:
        gone = gone.filter(died__number__gt=looked)
    if decided and decided.decided_at:
        gone = gone.filter(died__created_at__gt=decided.decided_at)
    return gone.count()


def pending_with(document: MemoryDocument, proposed_hash: str) -> HeldChange | None:
    """Return the pending change of a document that proposes a text. There is at most one (``held_change_once``)."""
    pending = HeldChange.objects.filter(document=document, status=HeldChange.Status.PENDING)
    return pending.filter(proposed_hash=proposed_hash).select_related("run").first()


def supersede(changes: QuerySet[HeldChange], *, by: By) -> list[HeldChange]:
    """Close the pending ones of some changes, which others replace, and return them. Call inside a transaction."""
    pending = changes.filter(status=HeldChange.Status.PENDING).order_by("pk")
    closed = list(pending.select_related("document", "workspace", "run").select_for_update(of=("self",)))
    for change in closed:
        change.status, change.decided_at = HeldChange.Status.SUPERSEDED, by.at
        change.save(update_fields=["status", "decided_at"])
        text = f"held change of {change.document.name} superseded"
        record(by, "change.superseded", "held_change", change.pk, text, workspace=change.workspace)
    return closed


def give_way(change: HeldChange, *, by: By) -> None:
    """Supersede a pending change whose text another one proposes, too.

    If a whole consolidation was held with it, that is cancelled; its messages stay unconsolidated.
    """
    for closed in supersede(HeldChange.objects.filter(pk=change.pk), by=by):
        if closed.run and closed.run.status == Run.Status.HELD:
            cancel_run(closed.run, by=by)


def store_held(
    change: HeldChange, words: str, *, by: By, session: Session | None = None, at: datetime | None = None
) -> HeldChange:
    """Store a new held change with its workspace, hash, time and audit record.

    A pending change with the same text gives way to it, whoever proposed that: a person decides about a text once.
    ``words``: for the audit log. ``at``: when it was proposed, if not now.
    """
    document = change.document
    change.workspace_id = document.workspace_id
    change.proposed_hash = content_hash(change.proposed)
    change.created_at = at or by.at
    if same := pending_with(document, change.proposed_hash):
        give_way(same, by=by)
    change.save(force_insert=True)
    text = f"{document.name}: {words}"
    record(
        by,
        "change.held",
        "held_change",
        change.pk,
        text,
        workspace=document.workspace,
        session=session,
        after_hash=change.proposed_hash,
        detail={"revisions": [one.number if one else None for one in (change.base, change.ours)]},
    )
    return change
