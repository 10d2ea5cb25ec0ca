"""Recognise facts of a document that people removed or corrected at any time, when they come back."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from knowledge_app.models import Fact, MemoryDocument, MemoryRevision
from memoryhub.lib.text.change_guard import compare_facts
from memoryhub.lib.text.facts import word_form
from sessions_app.models import AuditRecord

PEOPLE = (AuditRecord.ActorKind.PERSON, AuditRecord.ActorKind.COMMAND)
MAX_CORRECTIONS = 100  # revisions that are compared, newest first


def removed_facts(document: MemoryDocument | None) -> frozenset[str]:
    """Return the word forms of facts that people removed, or whose words they replaced, and that didn't come back."""
    if document is None:
        return frozenset()
    facts = Fact.objects.filter(document=document)
    removed = facts.filter(died__author_kind__in=PEOPLE).order_by("pk").values_list("text", "pk")
    gone = {word_form(text): pk for text, pk in removed}
    corrections = facts.filter(died=None).exclude(corrected=None).values_list("corrected", flat=True)
    replaced = {word_form(text) for text in _replaced(corrections)}
    if not gone and not replaced:
        return frozenset()
    newest = {word_form(text): pk for text, pk in facts.order_by("pk").values_list("text", "pk")}
    living = {word_form(text) for text in facts.filter(died=None).values_list("text", flat=True)}
    return frozenset({form for form, pk in gone.items() if newest[form] == pk} | replaced) - living


def added_again(before: str, after: str, removed: Collection[str]) -> set[int]:
    """Return the line numbers of the facts that a change adds and whose word form is in ``removed``."""
    added = compare_facts(before, after).added if removed else []
    return {fact.line for fact in added if word_form(fact.text) in removed}


def _replaced(corrections: Iterable[int]) -> set[str]:
    """Return the texts that revisions replaced."""
    newest = MemoryRevision.objects.filter(pk__in=set(corrections)).order_by("-pk")[:MAX_CORRECTIONS]
    pairs = ((revision.base, revision) for revision in newest.select_related("base"))
    changes = [compare_facts(base.content, revision.content) for base, revision in pairs if base]
    return {old.text for change in changes for old, _ in change.rewritten}
