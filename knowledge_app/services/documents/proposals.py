"""Changes that agents make to memory documents: written if that is safe, else held for review."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from django.db import transaction

from knowledge_app.models import Fact, HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.models.documents import PROPOSED
from knowledge_app.services.decisions import PEOPLE
from knowledge_app.services.documents.change_review import judge, store_held
from knowledge_app.services.documents.editing import curate_facts
from knowledge_app.services.documents.revisions import (
    StaleBase,
    content_hash,
    head_text,
    lock_document,
    revise_document,
)
from memoryhub.lib.database import db_retry
from memoryhub.lib.document_size import check_size
from memoryhub.lib.errors import Conflict, Invalid, NotFound
from memoryhub.lib.text.change_guard import change_checked, check_change
from memoryhub.lib.text.facts import fact_lines, normal_form
from memoryhub.lib.text.separated import with_entry
from memoryhub.lib.validation import clean_text
from sessions_app.models import AuditRecord
from sessions_app.services.audit import By

MAX_FACT = 2_000  # characters
MAX_PENDING = 50  # proposals of an author for a document


@dataclass(frozen=True)
class Written:
    """The result of a write: a new revision, a held change, or neither if nothing changed."""

    revision: MemoryRevision | None = None
    held: HeldChange | None = None


def text_checked(document: MemoryDocument | None, text: str) -> AbstractContextManager[None]:
    """Return a context in which the content check has read an agent's new text of a document.

    For callers that write in a transaction, which blocks other writers. Raises Invalid.
    """
    return change_checked(head_text(document), _cleaned(text))


@db_retry.retried
def write_text(
    document: MemoryDocument, text: str, *, base_number: int, by: By, reason: str, is_own_fact: bool = False
) -> Written:
    """Make an agent's text the document's head, or hold it where a run's change or all of the agent's would be held.

    ``base_number``: the revision that the text was made from, 0 where there was none. ``is_own_fact``: see ``judge``.
    Raises StaleBase if that isn't the head any more (nothing is merged behind an agent's back), LimitExceeded.
    """
    text = _cleaned(text)
    checked = check_change(head_text(document), text)  # before the transaction, which blocks other writers
    with transaction.atomic():
        locked = lock_document(document.pk)
        head = locked.head
        if (head.number if head else 0) != base_number:
            number = head.number if head else 0
            raise StaleBase(f"{locked.name} is at revision {number}, not {base_number}. Read it again.", head=number)
        if head is not None and text == head.content:
            return Written()
        change = check_change(head.content if head else "", text, known=checked)
        flags = judge(locked, change, by=by, is_own_fact=is_own_fact)
        if flags:
            return Written(held=_hold(locked, head, text, flags, by, "; ".join(flags)))
        return Written(revision=revise_document(locked, text, base=head, by=by, reason=reason))


@db_retry.retried
def append_fact(document: MemoryDocument, fact: str, *, by: By) -> Written:
    """Append a fact as the last line of a document, or hold it for review like any other change.

    A fact that the document already contains changes nothing, but a person or a command verifies it. Raises Invalid,
    LimitExceeded.
    """
    text = " ".join(clean_text(fact).split()).removeprefix("- ")
    if not text or len(text) > MAX_FACT:
        raise Invalid(f"A fact must have 1 to {MAX_FACT:,} characters.", code="bad_fact")
    line = text if document.separator else f"- {text}"
    before = head_text(document)
    checked = check_change(before, _with_line(document, before, line))
    with transaction.atomic():
        locked = lock_document(document.pk)
        head = locked.head
        before = head.content if head else ""
        known = {normal_form(one.text) for one in fact_lines(before, locked.separator)}
        added = {normal_form(one.text) for one in fact_lines(line, locked.separator)}
        if added <= known:
            _verify(locked, added, by)
            return Written()
        after = _cleaned(_with_line(locked, before, line))
        returned = None if by.actor.kind == AuditRecord.ActorKind.AGENT else ()  # a person may put a fact back
        flags = judge(locked, check_change(before, after, known=checked), by=by, returned=returned)
        if flags:
            return Written(held=_hold(locked, head, after, flags, by, "; ".join(flags)))
        return Written(revision=revise_document(locked, after, base=head, by=by, reason=f"added by {by.actor.name}"))


def _verify(document: MemoryDocument, added: Collection[str], by: By) -> None:
    if by.actor.kind in PEOPLE:
        facts = Fact.objects.filter(document=document, died=None).values_list("pk", "text")
        curate_facts(document, [pk for pk, text in facts if normal_form(text) in added], by=by, verified=True)


def _with_line(document: MemoryDocument, text: str, line: str) -> str:
    if document.separator:
        return with_entry(text, document.separator, line)
    return f"{text.rstrip()}\n{_gap(text)}{line}\n" if text.strip() else f"# Memory\n\n{line}\n"


def _gap(before: str) -> str:
    """Return an empty line unless the document ends with a list item."""
    return "" if before.rstrip().rpartition("\n")[2].lstrip().startswith(("-", "*", "+")) else "\n"


@db_retry.retried
def propose_text(document: MemoryDocument, text: str, *, base_number: int | None, by: By, reason: str) -> HeldChange:
    """Put a text into the review inbox, made from a revision (by default the head); a person decides.

    The same text is put there once. Raises NotFound, Conflict, LimitExceeded.
    """
    text = _cleaned(text)
    checked = check_change(head_text(document), text)
    with transaction.atomic():
        locked = lock_document(document.pk)
        base = locked.head
        if base_number is not None and base_number != (base.number if base else 0):
            base = locked.revisions.filter(number=base_number).first()
            if base is None and base_number:
                raise NotFound(f"{locked.name} has no revision {base_number}.", code="no_such_revision")
        before = base.content if base else ""
        if text == before:
            raise Conflict(f"{locked.name} has this text already.", code="nothing_proposed")
        flags = [PROPOSED, *judge(locked, check_change(before, text, known=checked))]
        return _hold(locked, base, text, flags, by, reason)


def _cleaned(text: str) -> str:
    text = clean_text(text.replace("\r\n", "\n"))
    check_size(text)
    return text


def _hold(
    document: MemoryDocument, base: MemoryRevision | None, text: str, flags: Sequence[str], by: By, reason: str
) -> HeldChange:
    pending = HeldChange.objects.filter(document=document, status=HeldChange.Status.PENDING)
    known = pending.filter(proposed_hash=content_hash(text)).first()
    if known is not None:
        return known
    if pending.filter(author_kind=by.actor.kind, author_name=by.actor.name[:200]).count() >= MAX_PENDING:
        raise Conflict(f"{MAX_PENDING} proposals for {document.name} are pending already.", code="too_many_proposals")
    change = HeldChange(
        document=document,
        base=base,
        ours=base,
        proposed=text,
        flags=list(flags),
        reason=reason,
        author_kind=by.actor.kind,
        author_name=by.actor.name[:200],
    )
    return store_held(change, f"a change by {by.actor.name} is held for review", by=by)
