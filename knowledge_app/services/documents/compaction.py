"""Compaction: remove near-duplicate lines of a document after a person has reviewed them."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from knowledge_app.models import Fact, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.change_review import pinned_facts
from knowledge_app.services.documents.revisions import revise_document
from memoryhub.lib.text.compaction import Compaction, find_duplicates, without_lines
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD
from sessions_app.services.audit import By


def plan_compaction(document: MemoryDocument, *, threshold: float = DEFAULT_THRESHOLD) -> Compaction:
    """Return a document's near-duplicates and contradictions. Pinned lines are never proposed for removal."""
    pinned = pinned_facts(document).values_list("line", flat=True)
    return find_duplicates(document.head.content if document.head else "", threshold=threshold, pinned=list(pinned))


@transaction.atomic
def apply_compaction(document: MemoryDocument, lines: Collection[int], *, by: By) -> MemoryRevision | None:
    """Remove fact lines from the text, except pinned ones; None if there are none to remove.

    ``lines``: line numbers in ``document.head`` as loaded. Raises StaleBase if it is no longer the head.
    """
    facts = Fact.objects.filter(document=document, died=None, pinned=False, line__in=list(lines))
    removable = set(facts.values_list("line", flat=True))
    if not removable or document.head is None:
        return None
    text = without_lines(document.head.content, removable)
    words = "a near-duplicate line" if len(removable) == 1 else f"{len(removable)} near-duplicate lines"
    return revise_document(document, text, base=document.head, by=by, reason=f"compacted: {words} removed")
