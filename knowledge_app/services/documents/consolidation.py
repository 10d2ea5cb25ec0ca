"""Consolidation: unconsolidated entries become facts in MEMORY.md and one history entry.

Plan (reads) → ask (a model; no transaction) → judge (``lib.text.change_guard``) → apply (one transaction). The commit
compares pointer, epoch and fencing number, and merges with concurrent changes to the document.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext

from knowledge_app.models import Fact, FactSource, HeldChange, HistoryEntry, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.checked_proposals import (
    foreign_facts,
    foreign_reason,
    held_facts,
    without_held,
)
from knowledge_app.services.documents.history import append_history
from knowledge_app.services.documents.revisions import content_hash, open_document, revise_document
from memoryhub.lib import db_retry
from memoryhub.lib.document_size import check_size
from memoryhub.lib.errors import Conflict
from memoryhub.lib.layouts.records import HistoryRecord
from memoryhub.lib.layouts.times import read_time
from memoryhub.lib.text.change_guard import additions_only, review_reasons
from memoryhub.lib.text.facts import normal_form
from memoryhub.lib.text.merge import merge_texts, overlay_texts
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


@dataclass(frozen=True)
class Proposal:
    """The model's result: the new text of MEMORY.md (the base if unchanged), the history entry and the summary."""

    memory: str
    history: str
    summary_text: str | None = None


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
    waiting = Entry.objects.filter(session=session, epoch=session.epoch, position__gte=session.last_consolidated)
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


@db_retry.retried
@transaction.atomic
def apply_proposal(run: Run, plan: Plan, proposal: Proposal, *, now: datetime, approved: bool = False) -> Run:
    """Commit a proposal: revision, facts with their origins, history, pointer, run and audit, all of it or nothing.

    The text is merged with what became of the document since the plan. A change that needs a person (see ``guard``)
    is held: its additions are committed, the rest waits; where there are no additions, or the texts conflict, nothing
    is committed and the run waits as a whole. ``approved``: a person has looked, so nothing is held.

    Raises Conflict when pointer or epoch moved, LimitExceeded, LeaseLost when the run isn't this worker's any more.
    """
    session = lock_session(plan.session.pk)
    if (session.epoch, session.last_consolidated) != (plan.session.epoch, plan.session.last_consolidated):
        raise Conflict(gettext("The session was cleared or consolidated in the meantime."), code="plan_stale")
    if run.options.get("clear_after") and not approved and session.next_position != plan.session.next_position:
        words = gettext("Entries were added while the session was being archived. Nothing was cleared.")
        raise Conflict(words, code="plan_stale")
    run.epoch, run.from_position, run.to_position = session.epoch, session.last_consolidated, plan.end
    run.base_revision_number = plan.base.number if plan.base else None
    document = MemoryDocument.objects.select_for_update(of=("self",)).get(pk=_document(plan).pk)
    head = document.head
    current = head.content if head else ""
    merged = merge_texts(plan.memory, current, proposal.memory, keep_both=True)
    if merged.text is None and approved:
        words = gettext(
            "The same lines of %(document)s have changed since. Edit the document by hand, then reject this change."
        )
        raise Conflict(words % {"document": document.name}, code="plan_stale")
    wanted = overlay_texts(plan.memory, current, proposal.memory)
    check_size(wanted, current)
    foreign = set() if approved else foreign_facts(current, wanted, plan.entries)
    flags = [] if approved else judge(document, current, wanted)
    flags += [foreign_reason(len(foreign))] if foreign else []
    if merged.text is None:
        flags = [f"the same lines of the document changed in the meantime, in {merged.conflict_count} places"]
    text = additions_only(current, wanted, held=foreign) if flags else wanted
    review_requested = bool(run.options.get("hold")) and not approved
    if review_requested or (flags and text == current):
        flags = flags or ["review was requested"]
        return _hold_whole(run, plan, document, wanted, proposal, flags, now)
    revision = _revise(document, head, text, run, now)
    safe = proposal if approved else _without_held(proposal, held_facts(wanted, text))
    history = _append_history(session, run, safe.history, now)
    change = _hold(run, document, wanted, flags, now) if flags else None
    _move_pointer(session, plan, safe)
    _close(run, plan, proposal, now, revision=revision, history=history, change=change, flags=flags)
    if run.options.get("clear_after"):
        _clear_or_continue(session, run, plan, By(Actor("run", f"run {run.pk}"), now), approved=approved)
    return run


def _without_held(proposal: Proposal, held: Sequence[str]) -> Proposal:
    """Return a proposal whose history entry and summary have no line that is held or flagged."""
    summary = proposal.summary_text
    if summary is not None:
        summary = without_held(summary, held, placeholder="")
    return replace(proposal, history=without_held(proposal.history, held), summary_text=summary)


def judge(document: MemoryDocument, current: str, wanted: str) -> list[str]:
    """Return the reasons why a person must review a run's change to a document, if any."""
    pinned = list(Fact.objects.filter(document=document, died=None, pinned=True).values_list("text", flat=True))
    return review_reasons(current, wanted, pinned=pinned, lost_before=facts_lost_since_review(document))


def facts_lost_since_review(document: MemoryDocument) -> int:
    """Return how many facts runs and files removed since a person last edited the document or reviewed a change."""
    looked = (
        document.revisions.filter(author_kind="person").order_by("-number").values_list("number", flat=True).first()
    )
    by_person = (HeldChange.Status.APPROVED, HeldChange.Status.REJECTED)
    decided = HeldChange.objects.filter(document=document, status__in=by_person).order_by("-decided_at").first()
    gone = Fact.objects.filter(document=document, died__isnull=False).exclude(died__author_kind="person")
    if looked:
        gone = gone.filter(died__number__gt=looked)
    if decided and decided.decided_at:
        gone = gone.filter(died__created_at__gt=decided.decided_at)
    return gone.count()


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
    entries = Entry.objects.filter(
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
    earlier = HeldChange.objects.filter(
        document=document, status=HeldChange.Status.PENDING, proposed_hash=content_hash(wanted)
    )
    earlier.update(status=HeldChange.Status.SUPERSEDED, decided_at=now)
    change = HeldChange.objects.create(
        workspace_id=document.workspace_id,
        document=document,
        run=run,
        base=document.head,
        ours=document.head,
        proposed=wanted,
        proposed_hash=content_hash(wanted),
        flags=list(flags),
        reason="; ".join(flags),
        author_kind="run",
        author_name=f"run {run.pk}",
        created_at=now,
    )
    record(
        By(Actor("run", f"run {run.pk}"), now),
        "change.held",
        "held_change",
        change.pk,
        f"{document.name}: a change by run {run.pk} is held ({change.reason})",
        workspace=document.workspace,
        session=run.session,
        after_hash=change.proposed_hash,
    )
    return change


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
    pending = HeldChange.objects.filter(run=run, status=HeldChange.Status.PENDING)
    pending.update(status=HeldChange.Status.SUPERSEDED, decided_at=by.at)
    session.last_consolidated = run.from_position
    if run.proposal.get("summary_before") is not None:
        session.summary_text = run.proposal["summary_before"]
    session.save(update_fields=["last_consolidated", "summary_text"])
    Run.objects.filter(pk=run.pk).update(status=Run.Status.UNDONE, finished_at=by.at)
    recount_session(session)
    text = f"Consolidation {run.pk} undone"
    record(by, "run.undone", "run", run.pk, text, workspace=session.workspace, session=session)


def _restore_before(revision: MemoryRevision, run: Run, by: By) -> None:
    document = MemoryDocument.objects.select_for_update(of=("self",)).get(pk=revision.document_id)
    if document.head_id != revision.pk:
        later = document.revisions.filter(Q(number__gt=revision.number)).order_by("number").first()
        number = later.number if later else "?"
        words = gettext(
            "Revision %(number)s of %(document)s builds on this run. Restore an earlier revision by hand instead."
        )
        raise RunNotFitting(words % {"number": number, "document": document.name})
    before = revision.base
    revise_document(
        document,
        before.content if before else "",
        base=revision,
        by=by,
        reason=f"undo of run {run.pk}",
        raw=bytes(before.raw) if before and before.raw is not None else None,
    )
