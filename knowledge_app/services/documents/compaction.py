"""Compaction: near-duplicate lines of a document merged, by a person who saw them. Removals stay findable."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from knowledge_app.models import Fact, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.revisions import revise_document
from memoryhub.lib.text.compaction import Compaction, find_duplicates, without_lines
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD
from sessions_app.services.audit import By


def plan_compaction(document: MemoryDocument, *, threshold: float = DEFAULT_THRESHOLD) -> Compaction:
    """Return what a document says twice, and what it says in contradiction. Reads only; pinned lines never go."""
    pinned = Fact.objects.filter(document=document, died=None, pinned=True).values_list("line", flat=True)
    return find_duplicates(document.head.content if document.head else "", threshold=threshold, pinned=list(pinned))


@transaction.atomic
def apply_compaction(document: MemoryDocument, lines: Collection[int], *, by: By) -> MemoryRevision | None:
    """Take some fact lines out of the text; None where there are none to take. Pinned lines stay.

    Line numbers are those of ``document.head`` as it was loaded. Raises StaleBase when it isn't the head any more.
    """
    facts = Fact.objects.filter(document=document, died=None, pinned=False, line__in=list(lines))
    may_go = set(facts.values_list("line", flat=True))
    if not may_go or document.head is None:
        return None
    text = without_lines(document.head.content, may_go)
    words = "a near-duplicate line" if len(may_go) == 1 else f"{len(may_go)} near-duplicate lines"
    return revise_document(document, text, base=document.head, by=by, reason=f"compacted: {words} removed")
