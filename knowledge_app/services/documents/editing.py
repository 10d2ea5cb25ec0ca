"""Edit memory documents by hand: save, restore, and curate facts. Every change of text is a revision."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from typing import Any

from django.db import transaction
from django.utils.translation import gettext

from knowledge_app.models import Fact, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.fact_states import restore_states
from knowledge_app.services.documents.revisions import lock_document, open_document, revise_document
from memoryhub.lib.content_check.stand_ins import pk_in, served_name
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.document_size import check_size
from memoryhub.lib.errors import Conflict, Invalid, NotFound
from memoryhub.lib.text.facts import BULLET, split_sections
from memoryhub.lib.text.merge import merge_texts
from memoryhub.lib.text.separated import split_entries, with_entry, without_entries
from memoryhub.lib.validation import clean_text
from sessions_app.models import Workspace
from sessions_app.services.audit import By, record

NAMES = ("MEMORY.md", "SOUL.md", "USER.md")
CURATED = ("pinned", "last_verified_at", "review_by")


class EditConflict(Conflict):
    """The same lines of the document have changed since the base; ``head`` is its current text."""

    code = "edit_conflict"

    def __init__(self, message: str, base: str, head: MemoryRevision) -> None:
        super().__init__(message, head=head.number)
        self.base = base
        self.head = head


@dataclass(frozen=True)
class Saved:
    """The revision that a save made (None if nothing changed), and whether it was merged with other changes."""

    revision: MemoryRevision | None
    is_merged: bool = False


def find_or_start_document(workspace: Workspace, name: str) -> MemoryDocument:
    """Return the document of this name, in any case if that is unique, or of the stand-in of its name.

    A standard one is created if missing.

    Raises NotFound, which lists the names.
    """
    documents = MemoryDocument.objects.filter(workspace=workspace)
    known = list(documents.filter(name=name)[:1]) or list(documents.filter(any_case("name__iexact", name))[:2])
    known = known or list(documents.filter(pk=pk_in(name, "document") or 0))
    if len(known) == 1:
        return known[0]
    standard = {one.casefold(): one for one in NAMES}
    if known or name.casefold() not in standard:
        rows = documents.order_by("name").values_list("name", "pk")[:50]
        existing = ", ".join(served_name(one, "document", pk) for one, pk in rows)
        listed = f" The documents are {existing}." if existing else ""
        raise NotFound(f"There is no document {name}.{listed} New documents can be named {', '.join(NAMES)}.")
    return start_document(workspace, standard[name.casefold()])


def start_document(workspace: Workspace, name: str) -> MemoryDocument:
    """Return a document that can be edited before any agent's file contains it; create it if needed."""
    path = f"memory/{name}" if name == "MEMORY.md" else name
    return open_document(workspace, name, path)


@transaction.atomic
def save_text(document: MemoryDocument, text: str, *, base_number: int, by: By, reason: str) -> Saved:
    """Save a text that was edited from a revision (0: from nothing); others' changes since are merged in.

    Raises EditConflict where both changed the same lines, LimitExceeded.
    """
    text = clean_text(text.replace("\r\n", "\n"))
    check_size(text)
    locked = lock_document(document.pk)
    head = locked.head
    is_merged = False
    if head is not None and head.number != base_number:
        base = locked.revisions.filter(number=base_number).values_list("content", flat=True).first() or ""
        merged = merge_texts(base, head.content, text)
        if merged.text is None:
            words = gettext("The same lines of %(document)s changed in the meantime.")
            raise EditConflict(words % {"document": document.name}, base, head)
        text, is_merged = merged.text, True
    if head is not None and text == head.content:
        return Saved(None)
    return Saved(revise_document(locked, text, base=head, by=by, reason=reason), is_merged)


@transaction.atomic
def restore_revision(
    document: MemoryDocument, number: int, *, by: By, base_number: int | None = None
) -> MemoryRevision | None:
    """Restore an earlier text as a new revision; None if it is the current text.

    ``base_number``: the revision that the person saw as the current one. Raises Conflict if there is a newer one,
    LimitExceeded.
    """
    locked = lock_document(document.pk)
    if base_number is not None and locked.head is not None and locked.head.number != base_number:
        words = gettext("Nothing was restored: %(document)s has changed in the meantime. Try again.")
        raise Conflict(words % {"document": locked.name}, code="edit_conflict")
    wanted = locked.revisions.get(number=number)
    if locked.head and wanted.content == locked.head.content:
        return None
    raw = bytes(wanted.raw) if wanted.raw is not None else None
    reason = f"restored revision {number}"
    revision = revise_document(locked, wanted.content, base=locked.head, by=by, reason=reason, raw=raw)
    undone = locked.revisions.filter(number__gt=number, number__lt=revision.number).defer("content", "raw")
    keep_curation(revision, undone=list(undone))
    return revision


def keep_curation(back_in: MemoryRevision, *, undone: Collection[MemoryRevision]) -> None:
    """Restore what people decided about facts whose words are back: pin, verification, review date.

    Facts that ended in the undone revisions have new rows, which get these from the latest earlier one.
    """
    restore_states(back_in, undone=undone)
    gone = Fact.objects.filter(died__in=undone)
    curated = gone.exclude(pinned=False, last_verified_at=None, review_by=None).order_by("died__number", "pk")
    earlier = {(fact.section, fact.text): fact for fact in curated}
    returned = [fact for fact in Fact.objects.filter(born=back_in) if (fact.section, fact.text) in earlier]
    for fact in returned:
        for name in CURATED:
            setattr(fact, name, getattr(earlier[fact.section, fact.text], name))
    Fact.objects.bulk_update(returned, CURATED, batch_size=200)


@transaction.atomic
def remove_facts(document: MemoryDocument, facts: Collection[int], *, by: By) -> int:
    """Remove fact lines from the document and return how many. Removed facts stay searchable."""
    locked = lock_document(document.pk)
    numbers = set(Fact.objects.filter(document=locked, died=None, pk__in=facts).values_list("line", flat=True))
    if not numbers or locked.head is None:
        return 0
    text = without_facts(locked, locked.head.content, numbers)
    words = "a fact" if len(numbers) == 1 else f"{len(numbers)} facts"
    revise_document(locked, text, base=locked.head, by=by, reason=f"removed {words}")
    return len(numbers)


def without_facts(document: MemoryDocument, text: str, lines: Collection[int]) -> str:
    """Return a document's text without the facts at the given lines."""
    if document.separator:
        return without_entries(text, document.separator, lines)
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in lines)


def edit_fact(fact: Fact, *, text: str, category: str, section: str, by: By) -> Fact:
    """Reword or move a fact as ``revise_fact`` does, and return it. Raises NotFound, Invalid."""
    return revise_fact(fact, text=text, category=category, section=section, by=by)[0]


@transaction.atomic
def revise_fact(fact: Fact, *, text: str, category: str, section: str, by: By) -> tuple[Fact, MemoryRevision]:
    """Reword a fact, give it another category, or move it to the end of another section; its pin and dates stay.

    Returns the fact with its new number, and the revision. Raises NotFound if the fact or the section no longer
    exists, and Invalid.
    """
    document = lock_document(fact.document_id)
    living = Fact.objects.filter(pk=fact.pk, died=None).first()
    if living is None or document.head is None:
        raise NotFound(gettext("This fact has been removed in the meantime."), code="no_such_fact")
    new_text, line = with_fact(document, living, text=text, category=category, section=section)
    revision = revise_document(document, new_text, base=document.head, by=by, reason="edited a fact")
    living.refresh_from_db()
    if living.died_id is None:
        return living, revision
    heir = Fact.objects.get(document=document, born=revision, line=line)  # too different to be matched
    Fact.objects.filter(pk=heir.pk).update(**_curation(living))
    heir.refresh_from_db()
    return heir, revision


def _curation(fact: Fact) -> dict[str, Any]:
    return {name: getattr(fact, name) for name in CURATED}


def _checked_entry(document: MemoryDocument, text: str) -> str:
    """Return a fact as an entry of a document with separators; it may have several lines. Raises Invalid."""
    entry = clean_text(text.replace("\r\n", "\n")).strip()
    if not entry or any(line.strip() == document.separator for line in entry.split("\n")):
        words = gettext("A fact of %(document)s needs a text without the line %(separator)s.")
        raise Invalid(words % {"document": document.name, "separator": document.separator}, code="bad_fact")
    return entry


def with_fact(document: MemoryDocument, fact: Fact, *, text: str, category: str, section: str) -> tuple[str, int]:
    """Return a document's text with a fact reworded or moved, and the fact's line. Raises NotFound, Invalid."""
    before = document.head.content if document.head else ""
    if document.separator:
        place = [entry.line for entry in split_entries(before, document.separator)].index(fact.line)
        after = with_entry(before, document.separator, _checked_entry(document, text), at=fact.line)
        return after, split_entries(after, document.separator)[place].line
    lines = before.split("\n")
    bullet = BULLET.match(lines[fact.line - 1])
    mark = bullet.group() if bullet else "- "
    new = f"{mark}{f'[{category}] ' if category else ''}{' '.join(clean_text(text).split())}"
    place = fact.line - 1
    if section != fact.section:
        at = _end_of_section(before, section)
        lines.insert(at, new)
        del lines[place if at > place else place + 1]
        place = at - 1 if at > place else at
    else:
        lines[place] = new
    return "\n".join(lines), place + 1


def _end_of_section(text: str, title: str) -> int:
    """Return the index for a section's next line: after its last non-blank line."""
    found = next((section for section in split_sections(text) if section.title == title), None)
    if found is None:
        raise NotFound(
            gettext("The section %(title)s no longer exists.") % {"title": repr(title)}, code="no_such_fact"
        )
    lines = text.split("\n")
    end = found.end - 1
    while end > found.start and not lines[end - 1].strip():
        end -= 1
    return end


@transaction.atomic
def bring_back(fact: Fact, *, by: By) -> MemoryRevision:
    """Restore a removed fact at the end of its section, or of the document if the section is gone.

    It keeps its pin and dates. Raises Conflict if it is there again already.
    """
    document = lock_document(fact.document_id)
    if is_back(fact):
        words = gettext("%(document)s has this fact again already.")
        raise Conflict(words % {"document": document.name}, code="already_decided")
    text = _with_fact_again(document, document.head.content if document.head else "", fact)
    revision = revise_document(document, text, base=document.head, by=by, reason="brought a fact back")
    Fact.objects.filter(born=revision, text=fact.text).update(**_curation(fact))
    return revision


def is_back(fact: Fact) -> bool:
    """Tell whether a document has the words of a removed fact as often as it ever had them at once."""
    facts = Fact.objects.filter(document=fact.document_id, text=fact.text).values_list("born", "died")
    changes = [(born, 1) for born, _ in facts] + [(died, -1) for _, died in facts if died is not None]
    counts = list(accumulate(change for _, change in sorted(changes)))
    return counts[-1] == max(counts)


def _with_fact_again(document: MemoryDocument, text: str, fact: Fact) -> str:
    if document.separator:
        return with_entry(text, document.separator, fact.text)
    category = f"[{fact.category}] " if fact.category else ""
    line = f"- {category}{fact.text}"
    lines = text.split("\n")
    place = Fact.objects.filter(document=document, died=None, section=fact.section).order_by("-line").first()
    at = place.line if place else len(lines) - (1 if lines and not lines[-1] else 0)
    return "\n".join([*lines[:at], line, *lines[at:]])


@transaction.atomic
def curate_facts(
    document: MemoryDocument,
    facts: Collection[int],
    *,
    by: By,
    pinned: bool | None = None,
    verified: bool = False,
    review_by: date | None = None,
) -> int:
    """Pin or unpin facts, mark them verified, or set a review date; return how many were changed."""
    living = Fact.objects.filter(document=document, died=None, pk__in=facts)
    values: dict[str, object] = {}
    words = []
    if pinned is not None:
        values["pinned"] = pinned
        words.append("pinned" if pinned else "unpinned")
    if verified:
        values["last_verified_at"] = by.at
        words.append("verified")
    if review_by is not None:
        values["review_by"] = review_by
        words.append(f"to be reviewed by {review_by}")
    count: int = living.update(**values) if values else 0
    if count:
        text = f"{document.name}: {count} fact{'' if count == 1 else 's'} {' and '.join(words)}"
        detail = {"facts": sorted(facts)}
        record(by, "facts.curated", "document", document.pk, text, workspace=document.workspace, detail=detail)
    return count
