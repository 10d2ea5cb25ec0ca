"""Correct and withdraw what is in the memory: an agent's own rows at once (undoable), others' as proposals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from knowledge_app.models import Fact, KeyValue, KnowledgeEntry, MemoryDocument, Observation
from knowledge_app.services.documents.editing import with_fact, without_facts
from knowledge_app.services.documents.fact_steps import followed_steps
from knowledge_app.services.documents.proposals import MAX_FACT, Written, propose_text, write_text
from knowledge_app.services.held_rows import unheld
from knowledge_app.services.rows.agent_changes import propose_if_needed
from knowledge_app.services.rows.key_values import checked
from knowledge_app.services.rows.knowledge import check_content_is_free, clean_content
from knowledge_app.services.rows.observations import NewObservation, checked_observation
from knowledge_app.services.rows.proposed_edits import is_own_row, propose_edit
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.agents.api_tokens import Caller, require
from memoryhub.agents.operations.reading import record_access
from memoryhub.agents.operations.writing import writes_checked
from memoryhub.forgetting.additions import refuse_forgotten, refuse_forgotten_fact, remembered_text
from memoryhub.lib.errors import Conflict, Invalid, NotFound
from memoryhub.lib.validation import MAX_REASON, clean_text
from memoryhub.origins.explanation import find_fact
from sessions_app.services.access_log import seen_rows
from sessions_app.services.audit import By

Document = dict[str, Any]
OBSERVED = ("observation", "finding", "insight", "lesson")
FACTS = ("memory", "fact")


@dataclass(frozen=True)
class Kind:
    """A table whose rows agents correct. ``text``: the field with the text; ``clean``: checks a new one."""

    table: str
    model: Any
    text: str
    clean: Callable[[Any, str], str]


def _clean_entry(entry: KnowledgeEntry, text: str) -> str:
    content = clean_content(text)
    check_content_is_free(entry, content)
    return content


KNOWLEDGE = Kind("knowledge", KnowledgeEntry, "content", _clean_entry)
OBSERVATIONS = Kind(
    "observations",
    Observation,
    "content",
    lambda row, text: checked_observation(NewObservation(row.category, text)).content,
)
KEY_VALUES = Kind("key_values", KeyValue, "value", lambda row, text: checked(row.key, text)[1])
KINDS = {"knowledge": KNOWLEDGE, "key_value": KEY_VALUES} | dict.fromkeys(OBSERVED, OBSERVATIONS)
NAMES = (*FACTS, *KINDS, "history")


@writes_checked
def correct(caller: Caller, kind: str, pk: int, text: str, *, reason: str = "", now: datetime) -> Document:
    """Replace the text of a fact, knowledge entry, observation or value. Returns what ``withdraw`` returns."""
    require(caller, "append")
    if kind in FACTS:
        return _change_fact(caller, pk, text, reason, now)
    found, row = _row(caller, kind, pk)
    refuse_forgotten(caller.workspace, text)
    new = found.clean(row, text)
    values = {found.text: new} | ({"is_json": False} if found is KEY_VALUES else {})
    if new == getattr(row, found.text):
        return _document(kind, pk, "unchanged")
    return _change_row(caller, kind, found, row, "assign", values, reason, now)


@writes_checked
def withdraw(caller: Caller, kind: str, pk: int, *, reason: str = "", now: datetime) -> Document:
    """Withdraw a fact, knowledge entry, observation or value; people can restore it.

    ``status``: changed (with the ``run`` or ``revision`` to undo), or held (by the content check) or proposed, with
    the ``proposal`` or ``run`` that waits. Raises NotFound, Invalid, and Conflict for what a person pinned.
    """
    require(caller, "append")
    if kind in FACTS:
        return _change_fact(caller, pk, None, reason, now)
    found, row = _row(caller, kind, pk)
    return _change_row(caller, kind, found, row, "withdraw", {"reason": _why(caller, reason)}, reason, now)


def _row(caller: Caller, kind: str, pk: int) -> tuple[Kind, Any]:
    found = KINDS.get(kind)
    if found is None:
        text = "Entries of the history can't be changed. Append a new one that says what is right."
        other = f"Unknown kind {kind}: use {', '.join(NAMES[:-1])}."
        raise Invalid(text if kind == "history" else other, code="unknown_kind")
    rows = unheld(found.model.objects.filter(workspace=caller.workspace, withdrawn_at=None))
    row = rows.select_related("workspace").filter(pk=pk).first()
    if row is None:
        raise NotFound(f"{caller.workspace.slug} has no {kind} {pk}.")
    return found, row


def _change_row(
    caller: Caller, kind: str, found: Kind, row: Any, action: str, values: Document, reason: str, now: datetime
) -> Document:
    by = By(caller.actor, now)
    record_access(caller, f"{found.table}.read", seen_rows(found.table, [row.pk]), now)
    if is_own_row(found.table, row, caller.actor):
        return _change_own(kind, found, row, action, values, _why(caller, reason), by)
    fields = (found.text, "withdrawn_at")
    run = propose_edit(row, found.table, action, values=values, fields=fields, reason=_why(caller, reason), by=by)
    return _document(kind, row.pk, "proposed", run=run.pk)


def _change_own(kind: str, found: Kind, row: Any, action: str, values: Document, reason: str, by: By) -> Document:
    waiting = propose_if_needed(row, values, reason=reason, by=by) if action == "assign" else None
    if waiting:
        return _document(kind, row.pk, "held", run=waiting.run.pk)
    run = edit_rows(row.workspace, found.table, action, [row.pk], values=values, by=by)
    return _document(kind, row.pk, "changed", run=run.pk)


def _change_fact(caller: Caller, pk: int, text: str | None, reason: str, now: datetime) -> Document:
    """Replace the text of a fact, or remove the fact (None)."""
    fact = find_fact(caller.workspace, pk)
    head = fact.document.head
    if fact.died_id is not None or head is None:
        raise NotFound(f"The fact {pk} is no longer in its document.", code="no_such_fact")
    if fact.pinned:
        raise Conflict("A person pinned this fact: only people change it.", code="pinned")
    record_access(caller, "facts.read", seen_rows("facts", [pk]), now)
    if text is None:
        new = without_facts(fact.document, head.content, {fact.line})
    else:
        refuse_forgotten_fact(caller.workspace, "", text)
        text = _fact_text(fact.document, text)
        new, _ = with_fact(fact.document, fact, text=text, category=fact.category, section=fact.section)
    if new == head.content:
        return _document("memory", pk, "unchanged", revision=head.number)
    by, why = By(caller.actor, now), _why(caller, reason)
    if _is_own_fact(caller, fact):
        written = write_text(fact.document, new, base_number=head.number, by=by, reason=why, is_own_fact=True)
        return _written(pk, written, head.number)
    change = propose_text(fact.document, new, base_number=head.number, by=by, reason=why)
    return _document("memory", pk, "proposed", proposal=change.pk)


def _is_own_fact(caller: Caller, fact: Fact) -> bool:
    """Tell whether the agent is known to have written and moved a fact itself, and no person verified it."""
    if fact.last_verified_at is not None:
        return False
    own = (caller.actor.kind, caller.actor.name)
    steps, is_whole = followed_steps(fact)
    return is_whole and all((step.revision.author_kind, step.revision.author_name) == own for step in steps)


def _written(pk: int, written: Written, base: int) -> Document:
    if written.held:
        return _document("memory", pk, "held", proposal=written.held.pk)
    number = written.revision.number if written.revision else base
    return _document("memory", pk, "changed" if written.revision else "unchanged", revision=number)


def _fact_text(document: MemoryDocument, text: str) -> str:
    new = text if document.separator else " ".join(clean_text(text).split()).removeprefix("- ")
    if not new or len(new) > MAX_FACT:
        raise Invalid(f"A fact must have 1 to {MAX_FACT:,} characters.", code="bad_fact")
    return new


def _why(caller: Caller, reason: str) -> str:
    said = remembered_text(caller.workspace, " ".join(reason.split()))
    return said[:MAX_REASON] or f"corrected by {caller.actor.name}"


def _document(kind: str, pk: int, status: str, **made: int) -> Document:
    return {"kind": kind, "id": pk, "status": status, "run": None, "proposal": None, "revision": None} | made
