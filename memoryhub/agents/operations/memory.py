"""Memory documents, proposals and the history log."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.db.models import Max, QuerySet

from knowledge_app.models import Fact, HeldChange, HistoryEntry, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.editing import find_or_start_document
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.documents.proposals import Written, append_fact, propose_text, text_checked, write_text
from knowledge_app.services.documents.revisions import StaleBase
from knowledge_app.services.held_rows import held_fields, unheld
from memoryhub.agents.api_tokens import Caller, require
from memoryhub.agents.operations.reading import readable_workspace, record_access
from memoryhub.agents.operations.writing import writes, writes_checked
from memoryhub.find_by_name import find_document
from memoryhub.forgetting.additions import (
    kept_key,
    refuse_forgotten,
    refuse_forgotten_fact,
    remembered_document,
    remembered_text,
)
from memoryhub.lib.content_check.stand_ins import served_name, served_text
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.errors import Conflict, Invalid, MemoryHubError, NotFound
from memoryhub.lib.http.pagination import rows_after
from memoryhub.lib.text.change_guard import is_change_checked
from memoryhub.lib.validation import MAX_REASON
from memoryhub.origins.explanation import explain, explanation_json, find_fact
from sessions_app.services.access_log import seen_entries, seen_revision, seen_rows
from sessions_app.services.audit import By

P = ParamSpec("P")
Document = dict[str, Any]
Writing = Callable[Concatenate[Caller, str, str, P], Document]  # of a document with a name, as a whole
MAX_ENTRY = 20_000


def list_documents(caller: Caller, *, workspace: str = "") -> list[Document]:
    """Return the memory documents and their current revisions, without texts. Raises NotFound."""
    require(caller, "read")
    place = readable_workspace(caller, workspace)
    found = MemoryDocument.objects.filter(workspace=place, head__isnull=False).select_related("head__proposal")
    return [_metadata(document, document.head) for document in found.order_by("name") if document.head]


def read_document(
    caller: Caller, name: str, *, revision: int | None = None, workspace: str = "", now: datetime
) -> Document:
    """Return a document's text, now or at a revision. Raises NotFound, also for an intermediate one of a file."""
    require(caller, "read")
    place = readable_workspace(caller, workspace)
    document = find_document(place, name)
    found = document.head if revision is None else _revisions(document).filter(number=revision).first()
    if found is None:
        raise NotFound(f"{name} has no revision {revision}.", code="no_such_revision")
    record_access(caller, "document.read", [seen_revision(document.pk, found.number)], now, workspace=place)
    return _metadata(document, found) | {"content": found.content}


def list_revisions(
    caller: Caller, name: str, *, cursor: str = "", limit: int = 50
) -> tuple[list[Document], str | None]:
    """Return a document's revisions, latest first: who made them, when and why. No intermediate ones of files."""
    require(caller, "read")
    document = find_document(caller.workspace, name)
    rows, next_cursor = rows_after(_revisions(document), order=("-number",), cursor=cursor, size=limit)
    return [_metadata(document, row) for row in rows], next_cursor


def _revisions(document: MemoryDocument) -> QuerySet[MemoryRevision]:
    return document.revisions.exclude(MemoryRevision.OF_FILE).select_related("proposal")


def explain_fact(caller: Caller, pk: int, *, now: datetime) -> Document:
    """Return where a fact came from, how certain that is, its revisions and near-duplicates. Raises NotFound."""
    require(caller, "read")
    facts = Fact.objects.filter(pk=pk)
    place = next((one for one in caller.readable if facts.filter(workspace=one).exists()), caller.workspace)
    explanation = explain(find_fact(place, pk))
    shown = [pk, *(other.pk for other, _ratio in explanation.duplicates)]
    seen = seen_rows("facts", shown) + seen_entries(explanation.seen_entries)
    record_access(caller, "facts.read", seen, now, workspace=place)
    return explanation_json(explanation)


def document_checked(caller: Caller, scope: str, name: str, content: str) -> AbstractContextManager[None]:
    """Return a context in which the content check has read a document's new text: call it before a transaction.

    ``scope``: without it, the operation will be refused, and nothing is checked.
    """
    if scope not in caller.token.scopes or is_change_checked():
        return nullcontext()
    try:
        document = find_document(caller.workspace, name)
    except NotFound:
        document = None
    try:
        return text_checked(document, remembered_document(caller.workspace, name, content))
    except MemoryHubError:  # the operation raises it, too
        return nullcontext()


def _checks_document(scope: str) -> Callable[[Writing[P]], Writing[P]]:
    """Decorate an operation that writes a document as a whole. See ``document_checked``."""

    def decorate(operation: Writing[P]) -> Writing[P]:
        @wraps(operation)
        def run(caller: Caller, name: str, content: str, /, *args: P.args, **kwargs: P.kwargs) -> Document:
            with document_checked(caller, scope, name, content):
                return operation(caller, name, content, *args, **kwargs)

        return run

    return decorate


@_checks_document("edit")
@writes
def write_document(
    caller: Caller, name: str, content: str, *, base: int, reason: str = "", now: datetime
) -> Document:
    """Write a document based on a revision (0 for a new document).

    ``status``: written, unchanged, or held (waiting for review). Raises NotFound, StaleBase, LimitExceeded.
    """
    require(caller, "edit")
    content = remembered_document(caller.workspace, name, content)
    document = find_or_start_document(caller.workspace, name)
    why = _why(caller, reason, "written")
    written = write_text(document, content, base_number=base, by=By(caller.actor, now), reason=why)
    return _written(_name(document), written, base)


@writes_checked
def add_fact(caller: Caller, name: str, fact: str, *, now: datetime) -> Document:
    """Append one fact to a document. Returns what ``write_document`` returns. Raises NotFound, Invalid."""
    require(caller, "append")
    refuse_forgotten_fact(caller.workspace, name, fact)
    document = find_or_start_document(caller.workspace, name)
    written = append_fact(document, fact, by=By(caller.actor, now))
    head = MemoryRevision.objects.filter(document=document).aggregate(latest=Max("number"))["latest"]
    return _written(_name(document), written, head or 0)


@writes_checked
def replace_line(
    caller: Caller, name: str, old: str, new: str, *, base: int | None = None, reason: str = "", now: datetime
) -> Document:
    """Replace one line of a document, or remove it if ``new`` is empty. Returns what ``write_document`` returns.

    ``base``: the revision that was read; without it, the head. The line must occur exactly once. Without the scope
    edit, the change is proposed. Raises NotFound, Conflict, StaleBase.
    """
    require(caller, "append")
    refuse_forgotten_fact(caller.workspace, "", new)
    document = find_document(caller.workspace, name)
    head = document.head
    if head is None or (base is not None and base != head.number):
        number = head.number if head else 0
        raise StaleBase(f"{_name(document)} is at revision {number}, not {base}. Read it again.", head=number)
    text = _with_line_replaced(_name(document), head.content, old, new)
    by = By(caller.actor, now)
    why = _why(caller, reason, "line replaced")
    if "edit" in caller.token.scopes:
        written = write_text(document, text, base_number=head.number, by=by, reason=why)
        return _written(_name(document), written, head.number)
    if text == head.content:
        return _written(_name(document), Written(), head.number)
    change = propose_text(document, text, base_number=head.number, by=by, reason=why)
    return _written(_name(document), Written(held=change), head.number)


def _with_line_replaced(name: str, text: str, old: str, new: str) -> str:
    """Return a text with a line replaced. Spaces around the line don't count; its indentation stays."""
    lines = text.split("\n")
    places = [number for number, line in enumerate(lines) if line.strip() == old.strip()]
    if not old.strip() or not places:
        raise NotFound(f"{name} has no such line. Read it again, and pass the whole line.", code="no_such_line")
    if len(places) > 1:
        raise Conflict(
            f"{name} has this line {len(places)} times. Propose the whole text instead.", code="many_lines"
        )
    line = lines[places[0]]
    indent = line[: len(line) - len(line.lstrip())]
    lines[places[0] : places[0] + 1] = [f"{indent}{new.strip()}"] if new.strip() else []
    return "\n".join(lines)


@_checks_document("append")
@writes
def propose_document(
    caller: Caller, name: str, content: str, *, base: int | None = None, reason: str = "", now: datetime
) -> Document:
    """Add a document's new text to the review inbox. Raises NotFound, Conflict."""
    require(caller, "append")
    content = remembered_document(caller.workspace, name, content)
    document = find_or_start_document(caller.workspace, name)
    why = _why(caller, reason, "proposed")
    change = propose_text(document, content, base_number=base, by=By(caller.actor, now), reason=why)
    return proposal_document(change)


def show_proposal(caller: Caller, pk: int) -> Document:
    """Return a proposal, which may be a run's if that proposed the same text. Raises NotFound."""
    require(caller, "read")
    change = _changes(caller).filter(pk=pk).first()
    if change is None:
        raise NotFound(f"This workspace has no proposal {pk}.")
    return proposal_document(change)


def list_proposals(caller: Caller, *, cursor: str = "", limit: int = 50) -> tuple[list[Document], str | None]:
    """Return the proposals of the workspace's agents, latest first."""
    require(caller, "read")
    changes = _changes(caller).filter(author_kind="agent")
    rows, next_cursor = rows_after(changes, order=("-id",), cursor=cursor, size=limit)
    return [proposal_document(row) for row in rows], next_cursor


@writes_checked
def append_history(caller: Caller, text: str, *, session_key: str = "", now: datetime) -> Document:
    """Append an entry to the history log. Raises Invalid."""
    require(caller, "append")
    if not text.strip() or len(text) > MAX_ENTRY:
        raise Invalid(f"A history entry must have 1 to {MAX_ENTRY:,} characters.", code="bad_note")
    refuse_forgotten(caller.workspace, text)
    key = kept_key(caller.workspace, session_key)
    entry = add_note(caller.workspace, text, by=By(caller.actor, now), session_key=key)
    return history_document(entry)


def list_history(
    caller: Caller, *, text: str = "", cursor: str = "", limit: int = 50, now: datetime
) -> tuple[list[Document], str | None]:
    """Return history entries, latest first; with ``text``, those that contain it, ignoring case. No held ones."""
    require(caller, "read")
    rows = unheld(HistoryEntry.objects.filter(workspace=caller.workspace, withdrawn_at=None))
    rows = rows.select_related("session", "hold")
    rows = rows.filter(any_case("content__icontains", text)) if text else rows
    found, next_cursor = rows_after(rows, order=("-position",), cursor=cursor, size=limit)
    record_access(caller, "history.read", seen_rows("history", [row.pk for row in found]), now)
    return [history_document(row) for row in found], next_cursor


def history_document(entry: HistoryEntry) -> Document:
    return {
        "id": entry.pk,
        "position": entry.position,
        "content": entry.content,
        "session": served_name(entry.session.key, "session", entry.session.pk) if entry.session else None,
        "occurred_at": entry.occurred_at,
        **held_fields(entry),
    }


def proposal_document(change: HeldChange) -> Document:
    return {
        "id": change.pk,
        "document": _name(change.document),
        "status": change.status,
        "base": change.base.number if change.base else 0,
        "why": list(change.flags),
        "reason": _reason(change),
        "created_at": change.created_at,
        "decided_at": change.decided_at,
        "decision_reason": change.decision_reason or None,
    }


def _changes(caller: Caller) -> QuerySet[HeldChange]:
    return HeldChange.objects.filter(workspace=caller.workspace).select_related("document", "base")


def _written(name: str, written: Written, base: int) -> Document:
    if written.held:
        return {"name": name, "status": "held", "revision": base, "proposal": proposal_document(written.held)}
    number = written.revision.number if written.revision else base
    return {"name": name, "status": "written" if written.revision else "unchanged", "revision": number}


def _why(caller: Caller, reason: str, done: str) -> str:
    """Return why an agent changes a document, by default what it did."""
    return (
        remembered_text(caller.workspace, " ".join(reason.split()))[:MAX_REASON] or f"{done} by {caller.actor.name}"
    )


def _name(document: MemoryDocument) -> str:
    return served_name(document.name, "document", document.pk)


def _reason(row: MemoryRevision | HeldChange) -> str:
    """Return why something was written: an agent's own words only if the content check finds nothing in them."""
    return served_text(row.reason) if row.author_kind == "agent" else row.reason


def _proposal(revision: MemoryRevision) -> Document | None:
    """Return the proposal that a revision accepted, and who made it."""
    proposal = revision.proposal
    if proposal is None:
        return None
    return {"id": proposal.pk, "author": {"kind": proposal.author_kind, "name": proposal.author_name}}


def _metadata(document: MemoryDocument, revision: MemoryRevision) -> Document:
    return {
        "name": _name(document),
        "revision": revision.number,
        "hash": revision.content_hash,
        "author": {"kind": revision.author_kind, "name": revision.author_name},
        "proposal": _proposal(revision),
        "reason": _reason(revision),
        "created_at": revision.created_at,
    }
