"""Carrying out a consolidation run: plan, ask the model, judge, commit or hold."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext, gettext_noop

from knowledge_app.models import HeldChange, MemoryRevision
from knowledge_app.services.documents.consolidation import (
    CONTEXT_HEADING,
    Plan,
    Proposal,
    apply_proposal,
    is_due,
    plan_consolidation,
)
from knowledge_app.services.documents.replies import read_facts, read_save_memory
from knowledge_app.services.prompts import FACTS_RULES, REWRITE_REQUEST, REWRITE_RULES, SAVE_MEMORY
from memoryhub.lib.errors import Conflict
from memoryhub.lib.llm import ModelRefused, ModelSettings, PromptTooLong, ask, ask_tool
from memoryhub.lib.text.facts import fact_lines, normal_form
from memoryhub.lib.tokens import count_tokens
from memoryhub.lookup import session_of
from sessions_app.models import Entry, Run, Session, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.model_choice import model_for
from sessions_app.services.runs import (
    RunNotFitting,
    claim_held_run,
    finish_run,
    is_resting,
    renew_lease,
    request_run,
)
from sessions_app.services.summarising import quoted
from sessions_app.services.token_budget import record_cost, within_budget

UPKEEP = Actor("run", "automatic consolidation")
ROOM_TOKENS = 4_096  # for a history entry and what a model thinks aloud, beside the memory itself
TOPICS = 3
MAX_ARCHIVED = 50_000  # characters of entries that the history takes as they are


def carry_out(run: Run, *, now: Callable[[], datetime]) -> None:
    """Consolidate what a claimed run is about. Raises MemoryHubError where it can't; then nothing changed."""
    session = session_of(run)
    plan = plan_consolidation(
        session, archive_all=run.options.get("archive_all", False), limit=run.options.get("entries")
    )
    if plan.reason:
        _nothing_due(run, plan, now())
        return
    if run.options.get("method") == "heuristic":
        apply_proposal(run, plan, archived(plan, run.options.get("note", "")), now=now())
        return
    model = chosen_model(session.workspace)
    messages, mark = messages_for(plan)
    if not within_budget(run, session.workspace, messages, now()):
        return
    renew_lease(run, stage=gettext_noop("waiting for the model"), steps_total=1)
    try:
        proposal = _proposal(run, plan, model, messages, mark, now)
    except PromptTooLong:
        run.options["entries"] = max(1, len(plan.entries) // 2)
        raise
    renew_lease(run, stage=gettext_noop("writing"))
    apply_proposal(run, plan, proposal, now=now())


def archived(plan: Plan, note: str) -> Proposal:
    """Return what moves the pointer without a model: the entries as they are, or a person's note, in the history."""
    first, last = plan.entries[0].position, plan.entries[-1].position
    if note:
        return Proposal(plan.memory, f"Skipped entries #{first} to #{last} of {plan.session.key}: {note}")
    text = "\n\n".join(_timed(entry) for entry in plan.entries)
    cut = f"\n[… {len(text) - MAX_ARCHIVED:,} characters more, in the session]" if len(text) > MAX_ARCHIVED else ""
    return Proposal(
        plan.memory, f"[RAW] {len(plan.entries)} messages of {plan.session.key}\n{text[:MAX_ARCHIVED]}{cut}"
    )


def _nothing_due(run: Run, plan: Plan, now: datetime) -> None:
    with transaction.atomic():
        finish_run(run, status=Run.Status.DONE, now=now, proposal={"nothing_due": plan.reason})


def chosen_model(workspace: Workspace) -> ModelSettings:
    """Return the model that consolidates. Raises ModelRefused: facts aren't found by rule."""
    model = model_for(workspace)
    if model is None:
        raise ModelRefused(
            "No model is set: set MEMORYHUB_LLM_MODEL and MEMORYHUB_LLM_BASE_URL to consolidate.",
            code="model_not_set",
        )
    return model


def messages_for(plan: Plan) -> tuple[list[dict[str, str]], str]:
    """Return the request of a plan, and the mark that stands around what it quotes."""
    mark = f"=== {secrets.token_hex(8)} ==="
    is_grip = plan.session.workspace.consolidation_style == "grip"
    rules = (FACTS_RULES if is_grip else REWRITE_RULES).format(mark=mark)
    text = "\n\n".join(_timed(entry) for entry in plan.entries)
    asked = REWRITE_REQUEST.format(memory=plan.memory.strip() or "(empty)", text=text, mark=mark)
    return [{"role": "system", "content": rules}, {"role": "user", "content": asked}], mark


def _timed(entry: Entry) -> str:
    when = f"[{entry.occurred_at:%Y-%m-%d %H:%M}] " if entry.occurred_at else ""
    return when + quoted(entry)


def _proposal(
    run: Run,
    plan: Plan,
    model: ModelSettings,
    messages: list[dict[str, str]],
    mark: str,
    now: Callable[[], datetime],
) -> Proposal:
    limit = ROOM_TOKENS + 2 * count_tokens(plan.memory)
    if plan.session.workspace.consolidation_style == "grip":
        reply = ask(model, messages, max_tokens=limit)
        record_cost(run, messages, reply, reply.text)
        return facts_proposal(plan, read_facts(reply.text, mark=mark), now())
    called = ask_tool(model, messages, SAVE_MEMORY, max_tokens=limit)
    record_cost(run, messages, called, str(called.arguments))
    saved = read_save_memory(called.arguments, mark=mark)
    return Proposal(_with_line_end(plan.memory, saved.memory_update), saved.history_entry)


def _with_line_end(before: str, after: str) -> str:
    """Keep the document's own way of ending: a reply's last line break is no change."""
    ending = before[len(before.rstrip("\n")) :] if before else "\n"
    return after.rstrip("\n") + ending


def facts_proposal(plan: Plan, facts: list[str], now: datetime) -> Proposal:
    """Return what Grip makes of facts: bullets under a heading of the day, a line of history, a summary text.

    Facts that the memory holds already are left out.
    """
    known = {normal_form(line.text) for line in fact_lines(plan.memory)}
    new = [f"- {fact}" for fact in facts if not {normal_form(line.text) for line in fact_lines(f"- {fact}")} & known]
    memory = plan.memory
    if new:
        before = f"{memory.rstrip(chr(10))}\n\n" if memory.strip() else ""
        memory = f"{before}### Consolidated {now:%Y-%m-%d}\n" + "\n".join(new) + "\n"
    summary = "\n".join([CONTEXT_HEADING, *(f"- {fact}" for fact in facts)]) if facts else None
    return Proposal(memory, _grip_history(plan), summary)


def _grip_history(plan: Plan) -> str:
    asked = [" ".join(entry.content.split())[:80] for entry in plan.entries if entry.role == "user"]
    topics = "; ".join(asked[:TOPICS]) or "none"
    return f"Consolidated {len(plan.entries)} messages. Topics: {topics}"


def approve_held_run(run: Run, change: HeldChange, text: str, *, owner: str, by: By) -> None:
    """Commit a consolidation that waited as a whole, with the text that a person approved.

    Raises Conflict when the session moved on since, RunNotFitting where the run doesn't wait.
    """
    if run.session is None:
        raise RunNotFitting(gettext("The session of this run was deleted."))
    with transaction.atomic():
        taken = claim_held_run(run, owner=owner, by=by)
        session = session_of(run)
        if (session.epoch, session.last_consolidated) != (run.epoch, run.from_position):
            raise Conflict(gettext("The session was cleared or consolidated since: reject this."), code="plan_stale")
        base: MemoryRevision | None = change.ours
        entries = Entry.objects.filter(session=session, epoch=run.epoch, position=run.proposal["end"] - 1)
        plan = Plan(session, change.document, base, list(entries))
        proposal = Proposal(text, run.proposal["history"], run.proposal["summary_text"])
        apply_proposal(taken, plan, proposal, now=by.at, approved=True)


def preview(session: Session, *, archive_all: bool, now: Callable[[], datetime]) -> tuple[Plan, Proposal | None, Run]:
    """Ask what a consolidation would propose, changing nothing. The run is in no table; it tells the cost."""
    plan = plan_consolidation(session, archive_all=archive_all)
    run = Run(workspace=session.workspace, session=session, kind=Run.Kind.CONSOLIDATION)
    if plan.reason:
        return plan, None, run
    messages, mark = messages_for(plan)
    return plan, _proposal(run, plan, chosen_model(session.workspace), messages, mark, now), run


def request_if_due(session: Session, now: datetime) -> Run | None:
    """Ask for an automatic consolidation where one is due: of sessions that are written to the hub, with a model set.

    An imported agent consolidates for itself. Nothing is asked for while a run is held or parked, or after a person
    said no, until a half window more was said.
    """
    workspace = session.workspace
    if not workspace.auto_consolidate or workspace.path or not is_due(session) or model_for(workspace) is None:
        return None
    if is_resting(session, Run.Kind.CONSOLIDATION, until=workspace.memory_window // 2):
        return None
    if plan_consolidation(session).reason:
        return None
    run, _ = request_run(session, Run.Kind.CONSOLIDATION, options={}, by=By(UPKEEP, now))
    return run
