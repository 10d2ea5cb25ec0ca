"""Recognise facts of a document that people removed or corrected at any time."""

from __future__ import annotations

from collections.abc import Iterable

from knowledge_app.models import Fact, MemoryDocument, MemoryRevision
from memoryhub.lib.text.change_guard import compare_facts
from memoryhub.lib.text.facts import word_form
from sessions_app.models import AuditRecord

PEOPLE = (AuditRecord.ActorKind.PERSON, AuditRecord.ActorKind.COMMAND)
MAX_CORRECTIONS = 100  # revisions that are compared, newest first


def removed_facts(document: MemoryDocument | None) -> frozenset[str]:
    """Return the word forms of facts that people removed, or whose words they replaced, and that aren't there."""
    if document is None:
        return frozenset()
    facts = Fact.objects.filter(document=document)
    gone = set(facts.filter(died__author_kind__in=PEOPLE).values_list("text", flat=True))
    gone.update(_replaced(facts.filter(died=None).exclude(corrected=None).values_list("corrected", flat=True)))
    if not gone:
        return frozenset()
    return frozenset(map(word_form, gone)).difference(
        map(word_form, facts.filter(died=None).values_list("text", flat=True))
    )


def _replaced(corrections: Iterable[int]) -> set[str]:
    """Return the texts that revisions replaced."""
    newest = MemoryRevision.objects.filter(pk__in=set(corrections)).order_by("-pk")[:MAX_CORRECTIONS]
    pairs = ((revision.base, revision) for revision in newest.select_related("base"))
    changes = [compare_facts(base.content, revision.content) for base, revision in pairs if base]
    return {old.text for change in changes for old, _ in change.rewritten}
