"""Decide whether a person must review a change of a memory document."""

from __future__ import annotations

from django.db.models import QuerySet

from knowledge_app.models import Fact, HeldChange, MemoryDocument
from memoryhub.lib.text.change_guard import CheckedChange, review_reasons


def judge(document: MemoryDocument, change: CheckedChange) -> list[str]:
    """Return the reasons why a person must review an agent's change to a document, if any."""
    pinned = pinned_facts(document).values_list("text", flat=True)
    return review_reasons(change, pinned=list(pinned), lost_before=facts_lost_since_review(document))


def pinned_facts(document: MemoryDocument | None) -> QuerySet[Fact]:
    """Return the facts of a document's head that agents can't change."""
    return Fact.objects.filter(document=document, died=None, pinned=True)


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
