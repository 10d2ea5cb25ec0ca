"""Memory documents: every change is a revision, and facts are updated with the text."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from django.db import transaction
from django.utils.translation import gettext

from knowledge_app.models import Fact, FactSource, HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.models.documents import INTERMEDIATE
from knowledge_app.services.decisions import PEOPLE
from knowledge_app.services.documents.fact_states import REVISED, REWORDED, State, restore_states, states_of
from knowledge_app.services.documents.limits import check_limits
from memoryhub.lib.document_size import check_size
from memoryhub.lib.errors import Conflict
from memoryhub.lib.text.facts import FactLine, fact_lines, match_facts
from sessions_app.models import AuditRecord, Run, SourceFolder, Workspace
from sessions_app.services.audit import By, record


class StaleBase(Conflict):
    """The document has changed since the base revision."""

    code = "stale_base"
    status = 412


def content_hash(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def open_document(
    workspace: Workspace, name: str, path: str = "", *, folder: SourceFolder | None = None
) -> MemoryDocument:
    """Return a document; create it without a revision if it doesn't exist."""
    values = {"path": path, "folder": folder}
    document, _ = MemoryDocument.objects.get_or_create(workspace=workspace, name=name, defaults=values)
    return document


def lock_document(pk: int) -> MemoryDocument:
    """Lock a document and return it with its head. The head is read by a second query.

    A query that had to wait for the lock gets joined rows as they were before, and so no head, from PostgreSQL.
    """
    MemoryDocument.objects.select_for_update().values_list("pk").get(pk=pk)
    related = ("workspace", "head", "synced_revision", "written_over")
    return MemoryDocument.objects.select_related(*related).get(pk=pk)


def head_text(document: MemoryDocument | None) -> str:
    """Return the current text of a document as it is in the database now, "" if it has none."""
    if document is None:
        return ""
    head = MemoryDocument.objects.values_list("head__content", flat=True).filter(pk=document.pk).first()
    return head or ""


def revise_document(
    document: MemoryDocument,
    content: str,
    *,
    base: MemoryRevision | None,
    by: By,
    reason: str,
    run: Run | None = None,
    proposal: HeldChange | None = None,
    raw: bytes | None = None,
    is_intermediate: bool = False,
) -> MemoryRevision:
    """Make ``content`` the document's head as a new revision, with its facts and an audit record.

    One transaction; the head moves by compare-and-set from ``base``. ``is_intermediate``: an intermediate revision,
    followed by another one in the same transaction; facts aren't updated, and agents don't get it. Raises
    LimitExceeded, and StaleBase if ``base`` isn't the head.
    """
    if is_intermediate and reason not in INTERMEDIATE:
        raise ValueError(f"{reason!r} is not the reason of an intermediate revision")
    if content != (base.content if base else ""):
        check_size(content, base.content if base else "")
        if by.actor.kind != AuditRecord.ActorKind.SYNC:  # a file is as its program wrote it
            check_limits(document, content, base.content if base else "")
    with transaction.atomic():
        revision = MemoryRevision.objects.create(
            document=document,
            number=base.number + 1 if base else 1,
            content=content,
            content_hash=content_hash(content),
            raw=raw,
            base=base,
            author_kind=by.actor.kind,
            author_name=by.actor.name,
            run=run,
            proposal=proposal,
            reason=reason,
            created_at=by.at,
        )
        moved = MemoryDocument.objects.filter(pk=document.pk, head=base).update(head=revision, updated_at=by.at)
        if not moved:
            words = gettext("Someone else has changed %(document)s. Reload it and merge your changes.")
            raise StaleBase(words % {"document": document.name})
        document.head, document.updated_at = revision, by.at
        reworded = {} if is_intermediate else update_facts(document, revision)
        record(
            by,
            REVISED,
            "revision",
            revision.pk,
            f"{document.name} revised: {reason}",
            workspace=document.workspace,
            before_hash=base.content_hash if base else "",
            after_hash=revision.content_hash,
            detail={REWORDED: reworded} if reworded else None,
        )
    return revision


def record_reveal(by: By, document: MemoryDocument, revision: MemoryRevision) -> None:
    """Record that somebody sees the secrets of a document."""
    text = f"{by.actor.name} revealed the secrets of {document.name}"
    record(by, "document.revealed", "revision", revision.pk, text, workspace=document.workspace)


def update_facts(document: MemoryDocument, revision: MemoryRevision) -> dict[str, State]:
    """Match the facts in the text with the current facts: update reworded ones, end missing ones, create new ones.

    Returns the states that reworded ones had. Unless a person reworded them or accepted the new words, they aren't
    verified any more: nobody saw these.
    """
    living = list(Fact.objects.filter(document=document, died=None).order_by("line", "id"))
    lines = fact_lines(revision.content, document.separator)
    pairs = match_facts([_line(fact) for fact in living], lines)
    reworded = [living[old] for new, old in pairs.items() if living[old].text != lines[new].text]
    states = states_of(reworded)
    is_by_person = revision.author_kind in PEOPLE
    if is_by_person:
        _delete_guesses([fact.pk for fact in reworded])
    for fact in reworded:
        fact.last_verified_at = fact.last_verified_at if is_by_person else None
    moved = [_move(living[old], lines[new]) for new, old in pairs.items() if _line(living[old]) != lines[new]]
    accepted = accepted_words(revision, document.separator)
    for fact in reworded:  # these have their new words now
        fact.accepted = revision if fact.text in accepted else None
        fact.corrected = revision if is_by_person and not fact.accepted else None
    changed = [
        "section",
        "category",
        "text",
        "line",
        "origins_checked_at",
        "corrected",
        "accepted",
        "last_verified_at",
    ]
    Fact.objects.bulk_update(moved, changed, batch_size=200)
    survivors = {living[old].pk for old in pairs.values()}
    gone = [fact.pk for fact in living if fact.pk not in survivors]
    for start in range(0, len(gone), 500):
        Fact.objects.filter(pk__in=gone[start : start + 500]).update(died=revision)
    Fact.objects.bulk_create(
        Fact(
            workspace_id=document.workspace_id,
            document=document,
            section=line.section,
            category=line.category,
            text=line.text,
            line=line.line,
            born=revision,
            accepted=revision if line.text in accepted else None,
        )
        for index, line in enumerate(lines)
        if index not in pairs
    )
    return states


def is_acceptance(revision: MemoryRevision) -> bool:
    """Tell whether a person accepted somebody else's proposal with a revision."""
    proposal = revision.proposal
    return proposal is not None and proposal.author_kind not in PEOPLE and revision.author_kind in PEOPLE


def accepted_words(revision: MemoryRevision, separator: str) -> set[str]:
    """Return the texts of the facts in the proposal that a person accepted with a revision."""
    if revision.proposal is None or not is_acceptance(revision):
        return set()
    return {line.text for line in fact_lines(revision.proposal.proposed, separator)}


def restore_facts(revision: MemoryRevision, *, died: Collection[MemoryRevision]) -> None:
    """Keep facts that ended in undone revisions, with pins and origins, in place of the equal new ones.

    Those whose earlier words are back are verified as they were.
    """
    born = Fact.objects.filter(born=revision, died=None)
    new = {(fact.section, fact.category, fact.text): fact for fact in born}
    for fact in Fact.objects.filter(died__in=died).order_by("line", "id"):
        copy = new.pop((fact.section, fact.category, fact.text), None)
        if copy is not None:
            copy.delete()
            Fact.objects.filter(pk=fact.pk).update(died=None, line=copy.line)
    restore_states(revision, undone=died)


def _delete_guesses(facts: Sequence[int]) -> None:
    """Delete the inferred origins of facts that a person reworded: they explain the earlier words."""
    kinds = (FactSource.Kind.PROBABLY_FROM, FactSource.Kind.RECORDED_WITH)
    for start in range(0, len(facts), 500):
        FactSource.objects.filter(fact__in=facts[start : start + 500], kind__in=kinds).delete()


def _line(fact: Fact) -> FactLine:
    return FactLine(fact.section, fact.category, fact.text, fact.line)


def _move(fact: Fact, line: FactLine) -> Fact:
    if fact.text != line.text:
        fact.origins_checked_at = None  # the new words may have another origin
    fact.section, fact.category, fact.text, fact.line = line.section, line.category, line.text, line.line
    return fact
