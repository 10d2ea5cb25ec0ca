"""Consolidation: unconsolidated entries become facts in MEMORY.md and one history entry.

Plan (reads) → ask (a model; no transaction) → check (no transaction) → apply (one transaction). The commit
compares pointer, epoch and fencing number, and merges with concurrent changes to the document.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext

from knowledge_app.models import Fact, FactSource, HeldChange, HistoryEntry, MemoryDocument, MemoryRevision
from knowledge_app.models.documents import REQUESTED
from knowledge_app.services.documents.change_review import additions, judge, store_held, supersede
from knowledge_app.services.documents.consolidation_guard import (
    CheckedProposal,
    Proposal,
    check_proposal,
    foreign_reason,
    held_facts,
    without_held_facts,
)
from knowledge_app.services.documents.history import append_history
from knowledge_app.services.documents.revisions import (
    head_text,
    lock_document,
    open_document,
    restore_facts,
    revise_document,
)
from knowledge_app.services.removed_texts import RemovedTexts
from memoryhub.lib.database import db_retry
from memoryhub.lib.document_size import check_size
from memoryhub.lib.errors import Conflict
from memoryhub.lib.layouts.records import HistoryRecord
from memoryhub.lib.layouts.times import read_time
from memoryhub.lib.text.facts import normal_form
from memoryhub.lib.text.merge import merge_texts
from sessions_app.models import Entry, Run, Session
from sessions_app.services.audit import Actor, By, record
from sessions_app.services.context_window import last_safe_cut
from sessions_app.services.entries import lock_session
from sessions_app.services.lifecycle import restart_session
from sessions_app.services.runs import RunNotFitting, finish_run, request_run
from sessions_app.services.totals import recount_session

MEMORY = "MEMORY.md"
CONTEXT_HEADING = "[Previous conversation context]"
MAX_ENTRIES = 5_000  # per run
_PREFIX = re.compile(r"^\s*\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?)(?: ?UTC| ?Z)?\]\s*")
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True)
class Plan:
    """The entries that a run consolidates and the document it starts from. ``reason``: why there are no entries."""

    session: Session
    document: MemoryDocument | None = None
    base: MemoryRevision | None = None
    entries: list[Entry] = field(default_factory=list)
    reason: str = ""

    @property
    def memory(self) -> str:
        return self.base.content if self.base else ""

    @property
    def end(self) -> int:
        return self.entries[-1].position + 1 if self.entries else self.session.last_consolidated


def is_due(session: Session) -> bool:
    """Tell whether enough is unconsolidated: a memory window for nanobot, more than two for Grip."""
    workspace = session.workspace
    waiting = session.next_position - session.last_consolidated
    if workspace.consolidation_style == "grip":
        return waiting > 2 * workspace.memory_window
    return waiting >= workspace.memory_window


def plan_consolidation(session: Session, *, archive_all: bool = False, limit: int | None = None) -> Plan:
    """Return the entries to consolidate: those from the pointer on, except the newest. Reads only.

    nanobot leaves half its memory window unconsolidated, Grip a whole window, ``archive_all`` nothing. A tool call is
    never separated from its results.
    """
    workspace = session.workspace
    if not workspace.persist_memory:
        return Plan(session, reason="This workspace keeps no memory (setting: Keep memory).")
    keep = workspace.memory_window if workspace.consolidation_style == "grip" else workspace.memory_window // 2
    waiting = Entry.objects.in_conversation().filter(
        session=session, epoch=session.epoch, position__gte=session.last_consolidated
    )
    entries = list(waiting.order_by("position")[: MAX_ENTRIES + keep])
    end = last_safe_cut(entries, len(entries) if archive_all else max(0, len(entries) - keep))
    end = min(end, MAX_ENTRIES)
    if limit and limit < end:
        end = last_safe_cut(entries, limit) or end
    if not end:
        words = "entry is" if len(entries) == 1 else "entries are"
        return Plan(session, reason=f"{len(entries)} {words} not consolidated, and the newest {keep} stay so.")
    document = MemoryDocument.objects.select_related("head").filter(workspace=workspace, name=MEMORY).first()
    return Plan(session, document, document.head if document else None, entries[:end])


def apply_proposal(run: Run, plan: Plan, proposal: Proposal, *, now: datetime, approved: bool = False) -> Run:
    """Commit a proposal: revision, facts with their origins, history, pointer, run and audit, all of it or nothing.

    The text is merged with what became of the document since the plan. A change that needs a person (see ``judge``)
    is held: its additions are committed, the rest waits; where there are no additions, or the texts conflict, nothing
    is committed and the run waits as a whole. ``approved``: a person has looked, so nothing is held.

    Raises Conflict when pointer or epoch moved, LimitExceeded, LeaseLost when the run isn't this worker's any more.
    """
    checked = None if approved else _check(plan, proposal, head_text(plan.document))
    return _apply(run, plan, proposal, checked, now)


def _check(plan: Plan, proposal: Proposal, current: str, known: CheckedProposal | None = None) -> CheckedProposal:
    removed = RemovedTexts(plan.session.workspace, document=plan.document)
    return check_proposal(proposal, plan.entries, plan.memory, current, removed=removed, known=known)


@db_retry.retried
@transaction.atomic
def _apply(run: Run, plan: Plan, proposal: Proposal, known: CheckedProposal | None, now: datetime) -> Run:
    """Commit a proposal; check it again only if the document has changed since. Without ``known``, it is approved."""
    session = _lock_unchanged(run, plan, approved=known is None)
    run.epoch, run.from_position, run.to_position = session.epoch, session.last_consolidated, plan.end
    run.base_revision_number = plan.base.number if plan.base else None
    document = lock_document(_document(plan).pk)
    head = document.head
    current = head.content if head else ""
    flags: list[str] = []
    if known is None:
        text = wanted = _approved_text(plan, document, current, proposal)
        safe = proposal
    else:
        checked = _check(plan, proposal, current, known)
        wanted = checked.change.after
        flags = _flags(document, checked)
        held = checked.foreign | checked.returned
        text = additions(document, checked.change, held=held) if flags else wanted
        if run.options.get("hold") or (flags and text == current):
            return _hold_whole(run, plan, document, wanted, proposal, flags or [REQUESTED], now)
        safe = without_held_facts(checked.unflagged, held_facts(wanted, text))
    revision = _revise(document, head, text, run, now)
    history = _append_history(session, run, safe.history, now)
    change = _hold(run, document, wanted, flags, now) if flags else None
    _move_pointer(session, plan, safe)
    _close(run, plan, proposal, now, revision=revision, history=history, change=change, flags=flags)
    if run.options.get("clear_after"):
        _clear_or_continue(session, run, plan, By(Actor("run", f"run {run.pk}"), now), approved=known is None)
    return run


def _lock_unchanged(run: Run, plan: Plan, *, approved: bool) -> Session:
    """Lock a plan's session. Raises Conflict if it has changed since the plan."""
    session = lock_session(plan.session.pk)
    if (session.epoch, session.last_consolidated) != (plan.session.epoch, plan.session.last_consolidated):
        raise Conflict(gettext("The session was cleared or consolidated in the meantime."), code="plan_stale")
    if run.options.get("clear_after") and not approved and session.next_position != plan.session.next_position:
        words = gettext("Entries were added while the session was being archived. Nothing was cleared.")
        raise Conflict(words, code="plan_stale")
    return session


def _flags(document: MemoryDocument, checked: CheckedProposal) -> list[str]:
    """Return the reasons why a person must review a proposal, if any."""
    if checked.conflict_count:
        return [f"the same lines of the document changed in the meantime, in {checked.conflict_count} places"]
    flags = judge(document, checked.change, returned=checked.returned)
    return flags + ([foreign_reason(len(checked.foreign))] if checked.foreign else [])


def _approved_text(plan: Plan, document: MemoryDocument, current: str, proposal: Proposal) -> str:
    """Return an approved text, merged with the document's current one. Raises Conflict, LimitExceeded."""
    merged = merge_texts(plan.memory, current, proposal.memory)
    if merged.text is None:
        words = gettext(
            "The same lines of %(document)s have changed since. Edit the document by hand, then reject this change."
        )
        raise Conflict(words % {"document": document.name}, code="plan_stale")
    check_size(merged.text, current)
    return merged.text


def _document(plan: Plan) -> MemoryDocument:
    return plan.document or open_document(plan.session.workspace, MEMORY, f"memory/{MEMORY}")


def _revise(
    document: MemoryDocument, head: MemoryRevision | None, text: str, run: Run, now: datetime
) -> MemoryRevision | None:
    """Save the new text and the sources of its facts; None if the text is unchanged."""
    if text == (head.content if head else ""):
        return None
    actor = Actor("run", f"run {run.pk}")
    reason = f"consolidated #{run.from_position} to #{run.to_position - 1} of {run.session}"
    revision = revise_document(document, text, base=head, by=By(actor, now), reason=reason, run=run)
    _record_sources(revision, run)
    return revision


def _record_sources(revision: MemoryRevision, run: Run) -> None:
    """Link each new fact to its run and to the (up to three) messages that share most of its words."""
    entries = Entry.objects.in_conversation().filter(
        session=run.session_id, epoch=run.epoch, position__gte=run.from_position, position__lt=run.to_position
    )
    words = {entry.pk: _words(entry.content) for entry in entries.exclude(content="")}
    sources = []
    for fact in Fact.objects.filter(born=revision):
        mine = _words(fact.text)
        shared = sorted(((len(mine & theirs), -pk) for pk, theirs in words.items() if mine & theirs), reverse=True)
        best = [-pk for count, pk in shared[:3] if count * 2 >= max(2, len(mine))] or [-pk for _, pk in shared[:1]]
        sources += [FactSource(fact=fact, run=run, entry_id=pk) for pk in best] or [FactSource(fact=fact, run=run)]
    FactSource.objects.bulk_create(sources, batch_size=500)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(normal_form(text)))


def _append_history(session: Session, run: Run, text: str, now: datetime) -> HistoryEntry | None:
    if not text.strip():
        return None
    prefix = _PREFIX.match(text)
    entry = HistoryRecord(
        content=text[prefix.end() :].strip() if prefix else text.strip(),
        source_hash="",
        occurred_at=(read_time(prefix.group(1), UTC) if prefix else None) or now,
        occurred_at_text=prefix.group(1) if prefix else "",
        session_key=session.key,
    )
    append_history(session.workspace, [entry], now=now, run=run)
    return HistoryEntry.objects.filter(workspace=session.workspace_id, run=run).order_by("-position").first()


def _move_pointer(session: Session, plan: Plan, proposal: Proposal) -> None:
    session.last_consolidated = plan.end
    names = ["last_consolidated"]
    if proposal.summary_text is not None:
        session.summary_text = proposal.summary_text
        names.append("summary_text")
    session.save(update_fields=names)
    recount_session(session)


def _clear_or_continue(session: Session, run: Run, plan: Plan, by: By, *, approved: bool) -> None:
    """Clear a session whose entries are all consolidated; otherwise request a run for the rest.

    A session that continued while its run waited for approval is left as it is.
    """
    if plan.end == session.next_position:
        restart_session(session, by=by)
    elif not approved:
        request_run(session, Run.Kind.CONSOLIDATION, options=dict(run.options), by=by)


def _hold(run: Run, document: MemoryDocument, wanted: str, flags: Sequence[str], now: datetime) -> HeldChange:
    change = HeldChange(
        document=document,
        run=run,
        base=document.head,
        ours=document.head,
        proposed=wanted,
        flags=list(flags),
        reason="; ".join(flags),
        author_kind="run",
        author_name=f"run {run.pk}",
    )
    words = f"a change by run {run.pk} is held ({change.reason})"
    return store_held(change, words, by=By(Actor("run", f"run {run.pk}"), now), session=run.session)


def _hold_whole(
    run: Run,
    plan: Plan,
    document: MemoryDocument,
    wanted: str,
    proposal: Proposal,
    flags: Sequence[str],
    now: datetime,
) -> Run:
    """Hold the text, history entry and pointer until a person approves them together."""
    change = _hold(run, document, wanted, flags, now)
    kept = {
        "history": proposal.history,
        "summary_text": proposal.summary_text,
        "flags": list(flags),
        "change": change.pk,
        "end": plan.end,
    }
    finish_run(run, status=Run.Status.HELD, now=now, proposal=kept)
    return run


def _close(
    run: Run,
    plan: Plan,
    proposal: Proposal,
    now: datetime,
    *,
    revision: MemoryRevision | None,
    history: HistoryEntry | None,
    change: HeldChange | None,
    flags: Sequence[str],
) -> None:
    kept = {
        "history": proposal.history,
        "history_entry": history.pk if history else None,
        "revision": revision.number if revision else None,
        "summary_before": plan.session.summary_text if proposal.summary_text is not None else None,
        "flags": list(flags),
        "change": change.pk if change else None,
    }
    if "end" in run.proposal:  # it was held as a whole, and its approval can be undone
        kept["held"] = run.proposal
    finish_run(run, status=Run.Status.DONE, now=now, proposal=kept)
    words = f"MEMORY.md revision {revision.number}" if revision else "nothing new for MEMORY.md"
    record(
        By(Actor("run", f"run {run.pk}"), now),
        "session.consolidated",
        "run",
        run.pk,
        f"{run.session}: #{run.from_position} to #{run.to_position - 1} consolidated, {words}",
        workspace=run.workspace,
        session=run.session,
        detail={"revision": kept["revision"], "change": kept["change"]},
    )


@transaction.atomic
def undo_consolidation(run: Run, *, by: By) -> None:
    """Undo a consolidation: restore the document and the pointer, and withdraw the history entry.

    Raises RunNotFitting if a later revision or run builds on it.
    """
    if run.session_id is None:
        raise RunNotFitting(gettext("The session of this run was deleted."))
    session = lock_session(run.session_id)
    run = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
    if run.kind != Run.Kind.CONSOLIDATION or run.status != Run.Status.DONE or run.origin != Run.Origin.HUB:
        raise RunNotFitting(gettext("There is nothing to undo in run %(number)s.") % {"number": run.pk})
    if (session.epoch, session.last_consolidated) != (run.epoch, run.to_position):
        words = gettext("A later consolidation builds on this run, or the session was cleared. Undo that first.")
        raise RunNotFitting(words)
    revision = MemoryRevision.objects.select_related("document", "base").filter(run=run).order_by("-number").first()
    if revision:
        _restore_before(revision, run, by)
    HistoryEntry.objects.filter(run=run).update(withdrawn_at=by.at)
    supersede(HeldChange.objects.filter(run=run), by=by)
    session.last_consolidated = run.from_position
    if run.proposal.get("summary_before") is not None:
        session.summary_text = run.proposal["summary_before"]
    session.save(update_fields=["last_consolidated", "summary_text"])
    Run.objects.filter(pk=run.pk).update(status=Run.Status.UNDONE, finished_at=by.at)
    recount_session(session)
    text = f"Consolidation {run.pk} undone"
    record(by, "run.undone", "run", run.pk, text, workspace=session.workspace, session=session)


def _restore_before(revision: MemoryRevision, run: Run, by: By) -> None:
    document = lock_document(revision.document_id)
    if document.head_id != revision.pk:
        later = document.revisions.filter(Q(number__gt=revision.number)).order_by("number").first()
        number = later.number if later else "?"
        words = gettext(
            "Revision %(number)s of %(document)s builds on this run. Restore an earlier revision by hand instead."
        )
        raise RunNotFitting(words % {"number": number, "document": document.name})
    before = revision.base
    restored = revise_document(
        document,
        before.content if before else "",
        base=revision,
        by=by,
        reason=f"undo of run {run.pk}",
        raw=bytes(before.raw) if before and before.raw is not None else None,
    )
    restore_facts(restored, died=[revision])
