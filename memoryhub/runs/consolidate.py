"""Carry out consolidation runs: plan, ask the model, check the reply, commit or hold it."""

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
    apply_proposal,
    is_due,
    plan_consolidation,
)
from knowledge_app.services.documents.consolidation_guard import (
    Proposal,
    held_facts,
    without_flagged_lines,
    without_held_facts,
)
from knowledge_app.services.documents.model_replies import EMPTY_MEMORY, read_facts, read_save_memory
from knowledge_app.services.prompts import FACTS_RULES, REWRITE_REQUEST, REWRITE_RULES, SAVE_MEMORY
from memoryhub.find_by_name import session_of
from memoryhub.lib.document_size import check_size
from memoryhub.lib.errors import Conflict
from memoryhub.lib.llm import ModelRefused, ModelSettings, PromptTooLong, ask, ask_tool
from memoryhub.lib.text.facts import fact_lines, normal_form
from memoryhub.lib.text.reply_faults import check_reply, keep_reply
from memoryhub.lib.tokens import count_tokens
from sessions_app.models import Entry, Run, Session, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.compressing.model_choice import model_for
from sessions_app.services.compressing.summarising import quoted
from sessions_app.services.compressing.token_budget import record_cost, within_budget
from sessions_app.services.runs import (
    RunNotFitting,
    claim_held_run,
    finish_nothing_due,
    is_resting,
    renew_lease,
    request_run,
)

UPKEEP = Actor("run", "automatic consolidation")
EXTRA_TOKENS = 4_096  # for the history entry and the model's reasoning, besides the memory itself
MAX_TOPICS = 3  # in the history entry of a Grip consolidation
MAX_ARCHIVED = 50_000  # characters of messages copied into one history entry


def carry_out(run: Run, *, now: Callable[[], datetime]) -> None:
    """Consolidate the session of a claimed run. Raises MemoryHubError and changes nothing if it can't."""
    session = session_of(run)
    plan = plan_consolidation(
        session, archive_all=run.options.get("archive_all", False), limit=run.options.get("entries")
    )
    if plan.reason:
        finish_nothing_due(run, session, plan.reason, now=now())
        return
    is_raw = bool(run.options.get("clear_after")) and model_for(session.workspace) is None
    if is_raw or run.options.get("method") == "heuristic":
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
    """Return a proposal without a model: the history entry holds the raw messages, or somebody's note."""
    first, last = plan.entries[0].position, plan.entries[-1].position
    if note:
        return Proposal(plan.memory, f"Skipped entries #{first} to #{last} of {plan.session.key}: {note}")
    text = "\n\n".join(_timed(entry) for entry in plan.entries)
    cut = f"\n[… {len(text) - MAX_ARCHIVED:,} more characters, in the session]" if len(text) > MAX_ARCHIVED else ""
    return Proposal(
        plan.memory, f"[RAW] {len(plan.entries)} messages of {plan.session.key}\n{text[:MAX_ARCHIVED]}{cut}"
    )


def chosen_model(workspace: Workspace) -> ModelSettings:
    """Return the model for consolidation. Raises ModelRefused if none is set."""
    model = model_for(workspace)
    if model is None:
        raise ModelRefused(
            "No model is connected. Connect one in the hub's settings, or set MEMORYHUB_LLM_MODEL.",
            code="model_not_set",
        )
    return model


def messages_for(plan: Plan) -> tuple[list[dict[str, str]], str]:
    """Return the request for a plan, and the random mark that delimits the quoted conversation in it."""
    mark = f"=== {secrets.token_hex(8)} ==="
    is_grip = plan.session.workspace.consolidation_style == "grip"
    rules = (FACTS_RULES if is_grip else REWRITE_RULES).format(mark=mark)
    text = "\n\n".join(_timed(entry) for entry in plan.entries)
    request = REWRITE_REQUEST.format(memory=plan.memory.strip() or EMPTY_MEMORY, text=text, mark=mark)
    return [{"role": "system", "content": rules}, {"role": "user", "content": request}], mark


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
    limit = EXTRA_TOKENS + 2 * count_tokens(plan.memory)
    if plan.session.workspace.consolidation_style == "grip":
        reply = ask(model, messages, max_tokens=limit)
        record_cost(run, messages, reply, reply.text)
        with keep_reply(reply.text):
            check_reply(reply.text, messages[0]["content"], messages[1]["content"])
            return facts_proposal(plan, read_facts(reply.text, mark=mark), now())
    called = ask_tool(model, messages, SAVE_MEMORY, max_tokens=limit)
    record_cost(run, messages, called, str(called.arguments))
    with keep_reply(str(called.arguments)):
        saved = read_save_memory(called.arguments, memory=plan.memory, mark=mark)
        check_size(saved.memory_update, plan.memory)
        for text in (saved.history_entry, saved.memory_update):
            check_reply(text, messages[0]["content"], plan.memory)
    if saved.memory_update == plan.memory:
        return Proposal(plan.memory, saved.history_entry)
    return Proposal(_with_line_end(plan.memory, saved.memory_update), saved.history_entry)


def _with_line_end(before: str, after: str) -> str:
    """Return ``after`` with the trailing newlines of ``before``, so that they never count as a change."""
    ending = before[len(before.rstrip("\n")) :] if before else "\n"
    return after.rstrip("\n") + ending


def facts_proposal(plan: Plan, facts: list[str], now: datetime) -> Proposal:
    """Return what Grip writes for facts: bullets under a dated heading, a history entry and a summary text.

    Facts that the memory already contains are left out.
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
    topics = [" ".join(entry.content.split())[:80] for entry in plan.entries if entry.role == "user"]
    return f"Consolidated {len(plan.entries)} messages. Topics: {'; '.join(topics[:MAX_TOPICS]) or 'none'}"


def approved_proposal(run: Run, change: HeldChange, text: str) -> Proposal:
    """Return a held proposal with the text that was approved.

    Unless that is the whole change, the history entry and summary lose the lines about what isn't approved.
    """
    proposal = Proposal(text, run.proposal["history"], run.proposal["summary_text"])
    if text == change.proposed:
        return proposal
    return without_held_facts(without_flagged_lines(proposal), held_facts(change.proposed, text))


def approve_held_run(run: Run, change: HeldChange, proposal: Proposal, *, owner: str, by: By) -> None:
    """Commit a consolidation that was held as a whole, as far as it was approved.

    Raises Conflict if the session was cleared or consolidated since, RunNotFitting if the run isn't held.
    """
    if run.session is None:
        raise RunNotFitting(gettext("The session of this run has been deleted."))
    with transaction.atomic():
        claimed = claim_held_run(run, owner=owner, by=by)
        session = session_of(run)
        if (session.epoch, session.last_consolidated) != (run.epoch, run.from_position):
            raise Conflict(
                gettext("The session has been cleared or consolidated since. Reject this change."), code="plan_stale"
            )
        base: MemoryRevision | None = change.ours
        entries = Entry.objects.filter(session=session, epoch=run.epoch, position=run.proposal["end"] - 1)
        plan = Plan(session, change.document, base, list(entries))
        apply_proposal(claimed, plan, proposal, now=by.at, approved=True)


def preview(session: Session, *, archive_all: bool, now: Callable[[], datetime]) -> tuple[Plan, Proposal | None, Run]:
    """Return what a consolidation would propose, and an unsaved run with its cost. Changes nothing."""
    plan = plan_consolidation(session, archive_all=archive_all)
    run = Run(workspace=session.workspace, session=session, kind=Run.Kind.CONSOLIDATION)
    if plan.reason:
        return plan, None, run
    messages, mark = messages_for(plan)
    return plan, _proposal(run, plan, chosen_model(session.workspace), messages, mark, now), run


def request_if_due(session: Session, now: datetime) -> Run | None:
    """Request an automatic consolidation if one is due and a model is set.

    Imported agents consolidate themselves. Returns None while a run is held or parked; after a rejection, half a
    window of new messages must arrive first.
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
