"""Bulk edits of a document's facts: each is one revision, undone by another one that is merged."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext

from knowledge_app.models import Fact, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.editing import Saved, keep_curation, save_text, without_facts
from knowledge_app.services.documents.revisions import lock_document, revise_document
from memoryhub.lib.errors import Conflict, Invalid
from memoryhub.lib.text.facts import BULLET
from memoryhub.lib.validation import clean_text
from sessions_app.services.audit import By

_WITH_CATEGORY = re.compile(rf"{BULLET.pattern}\[[\w-]{{1,64}}\]\s+")
_CATEGORY = re.compile(r"[\w-]{0,64}")


@dataclass(frozen=True)
class Revised:
    """The revision that a bulk edit made (None if nothing changed), and the number of facts changed."""

    revision: MemoryRevision | None
    count: int


def checked_category(text: str) -> str:
    """Return a category as it is written before a fact, "" for none. Raises Invalid."""
    category = "_".join(clean_text(text).lower().split())
    if not _CATEGORY.fullmatch(category):
        raise Invalid(gettext("A category is one word of up to 64 letters, digits, - and _."), code="bad_category")
    return category


@transaction.atomic
def recategorise_facts(document: MemoryDocument, facts: Collection[int], category: str, *, by: By) -> Revised:
    """Give fact lines another category, "" for none; the facts live on. Raises Invalid."""
    wanted = checked_category(category)
    locked, living = _locked(document, facts)
    changing = [fact for fact in living if fact.category != wanted]
    if locked.head is None or not changing:
        return Revised(None, 0)
    if locked.separator:
        words = gettext("Facts of %(document)s have no categories.")
        raise Invalid(words % {"document": locked.name}, code="bad_category")
    lines = locked.head.content.split("\n")
    for fact in changing:
        lines[fact.line - 1] = _with_category(lines[fact.line - 1], fact, wanted)
    words = f"{_count(len(changing))} re-categorised as {wanted or 'none'}"
    revision = revise_document(locked, "\n".join(lines), base=locked.head, by=by, reason=words)
    return Revised(revision, len(changing))


def _with_category(line: str, fact: Fact, category: str) -> str:
    bullet = BULLET.match(line)
    old = _WITH_CATEGORY.match(line) if fact.category else bullet
    rest = line[old.end() :] if old else line
    return f"{bullet.group() if bullet else '- '}{f'[{category}] ' if category else ''}{rest}"


@transaction.atomic
def withdraw_facts(document: MemoryDocument, facts: Collection[int], *, by: By, reason: str = "") -> Revised:
    """Remove facts from the document; they stay searchable."""
    locked, living = _locked(document, facts)
    if locked.head is None or not living:
        return Revised(None, 0)
    numbers = {fact.line for fact in living}
    text = without_facts(locked, locked.head.content, numbers)
    words = f"removed {_count(len(living))}{f': {reason}' if reason else ''}"
    revision = revise_document(locked, text, base=locked.head, by=by, reason=words)
    return Revised(revision, len(living))


def _locked(document: MemoryDocument, facts: Collection[int]) -> tuple[MemoryDocument, list[Fact]]:
    locked = lock_document(document.pk)
    wanted = set(facts)
    living = Fact.objects.filter(document=locked, died=None).order_by("line", "id")
    return locked, [fact for fact in living if fact.pk in wanted]


@transaction.atomic
def undo_revision(document: MemoryDocument, number: int, *, by: By) -> Saved:
    """Take a revision back as a new one, merged with what changed since; facts that return keep pins and dates.

    Raises Conflict, and EditConflict where the same lines were changed again.
    """
    made = document.revisions.filter(number=number).first()
    before = document.revisions.filter(number=number - 1).first()
    if made is None or before is None:
        words = gettext("%(document)s has no revision before revision %(number)s.")
        raise Conflict(words % {"document": document.name, "number": number}, code="nothing_to_undo")
    reason = f"undid revision {number}"
    saved = save_text(document, before.content, base_number=number, by=by, reason=reason)
    if saved.revision is not None:
        keep_curation(saved.revision, undone=[made])
    return saved


def _count(number: int) -> str:
    return "a fact" if number == 1 else f"{number:,} facts"
