"""Carry out compression runs: plan, summarise with a model or by rule, commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext, gettext_noop

from memoryhub.find_by_name import session_of
from memoryhub.lib.content_check.check import check_text
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Conflict, Invalid
from memoryhub.lib.llm import ModelRefused, ModelSettings, PromptTooLong, Reply, ask
from memoryhub.lib.tokens import counter_for
from sessions_app.models import Entry, Run, Session, Summary
from sessions_app.services.audit import Actor, By
from sessions_app.services.compressing.compression import Plan, apply_summary, is_due, plan_compression
from sessions_app.services.compressing.model_choice import model_for
from sessions_app.services.compressing.summarising import (
    MIN_PART_TOKENS,
    PART_TOKENS,
    Request,
    by_model,
    by_rule,
    requests_for,
)
from sessions_app.services.compressing.token_budget import record_cost, within_budget
from sessions_app.services.entries import lock_session
from sessions_app.services.lifecycle import restart_session
from sessions_app.services.runs import (
    RunNotFitting,
    claim_held_run,
    finish_nothing_due,
    finish_run,
    is_resting,
    renew_lease,
    request_run,
)

UPKEEP = Actor("run", "automatic compression")
REJECTION_REST = 2  # after a rejected run, the next waits for max_entries / REJECTION_REST new entries


@dataclass(frozen=True)
class Draft:
    """A planned compression and its summary. ``method``: llm or heuristic; ``tokens``: spent on model requests."""

    plan: Plan
    text: str = ""
    method: str = ""
    tokens: int = 0

    @property
    def summary_tokens(self) -> int:
        return counter_for(self.plan.session.workspace.model).count(self.text)


def carry_out(run: Run, *, now: Callable[[], datetime]) -> None:
    """Compress the session of a claimed run. Raises MemoryHubError and changes nothing if it can't."""
    session = session_of(run)
    options = run.options
    plan = plan_compression(
        session, keep=options.get("keep"), minimum=options.get("minimum"), prune=bool(options.get("prune"))
    )
    if plan.reason:
        finish_nothing_due(run, session, plan.reason, now=now())
        return
    model = chosen_model(session, run.options.get("method", "auto"))
    if model is None:
        text, method = by_rule(plan), Summary.Method.HEURISTIC
    else:
        requests = requests_for(plan, options.get("part_tokens", PART_TOKENS), prompt=options.get("prompt", ""))
        messages = [message for request in requests for message in request.messages]
        if not within_budget(run, session.workspace, messages, now()):
            return
        text, method = _text_by_model(run, plan, requests, model), Summary.Method.LLM
    _check_saving(run, plan, text)
    renew_lease(run, stage=gettext_noop("writing"))
    if run.options.get("hold") or (method == Summary.Method.LLM and check_text(text)):
        _hold_for_review(run, plan, text, method, now())
    else:
        _commit(run, plan, text, method, now())


@db_retry.retried
@transaction.atomic
def _commit(run: Run, plan: Plan, text: str, method: str, now: datetime) -> None:
    apply_summary(run, plan, text, method=method, now=now)
    if run.options.get("clear_after"):
        session = lock_session(plan.session.pk)
        if session.next_position > plan.last_position + 1:
            raise Conflict(
                "Entries were added while the session was being archived. Nothing was cleared.", code="plan_stale"
            )
        restart_session(session, by=By(Actor("run", f"run {run.pk}"), now))


def _hold_for_review(run: Run, plan: Plan, text: str, method: str, now: datetime) -> None:
    run.epoch, run.from_position, run.to_position = plan.session.epoch, plan.first_position, plan.last_position + 1
    proposal = {
        "text": text,
        "method": method,
        "before": plan.original_tokens,
        "entries": [entry.pk for entry in plan.entries],
        "summaries": [summary.pk for summary in plan.summaries],
    }
    with transaction.atomic():
        finish_run(run, status=Run.Status.HELD, now=now, proposal=proposal)


def approve_held(run: Run, *, owner: str, by: By) -> None:
    """Commit a held compression. Raises Conflict if the session has changed since, RunNotFitting if it isn't held."""
    proposal = run.proposal
    if run.session is None or run.status != Run.Status.HELD or run.kind != Run.Kind.COMPRESSION:
        raise RunNotFitting(gettext("Run %(number)s isn't waiting for a decision.") % {"number": run.pk})
    with transaction.atomic():
        claimed = claim_held_run(run, owner=owner, by=by)
        session = session_of(run)
        plan = Plan(
            session,
            list(Entry.objects.filter(pk__in=proposal["entries"], epoch=run.epoch).order_by("position")),
            list(Summary.objects.filter(pk__in=proposal["summaries"], epoch=run.epoch).order_by("first_position")),
        )
        if session.epoch != run.epoch or not (plan.entries or plan.summaries):
            raise Conflict(
                gettext("The session was cleared after this summary was written. Discard the summary."),
                code="plan_stale",
            )
        _commit(claimed, plan, proposal["text"], proposal["method"], by.at)


def chosen_model(session: Session, method: str) -> ModelSettings | None:
    """Return the model to use, or None to summarise by rule. Raises ModelRefused if ``llm`` has no model."""
    model = None if method == Summary.Method.HEURISTIC else model_for(session.workspace)
    if model is None and method == Summary.Method.LLM:
        raise ModelRefused(
            "No model is connected. Connect one in the hub's settings, or summarise by rule.",
            code="model_not_set",
        )
    return model


def draft(session: Session, *, method: str = "auto", keep: int | None = None, prompt: str = "") -> Draft:
    """Return a compression without applying it. If a model is set, it is asked, which costs tokens."""
    plan = plan_compression(session, keep=keep)
    if plan.reason:
        return Draft(plan)
    model = chosen_model(session, method)
    if model is None:
        return Draft(plan, by_rule(plan), Summary.Method.HEURISTIC)

    spent = 0

    def ask_model(messages: list[dict[str, str]], limit: int) -> Reply:
        nonlocal spent
        reply = ask(model, messages, max_tokens=limit)
        spent += reply.prompt_tokens + reply.completion_tokens
        return reply

    text = by_model(plan, requests_for(plan, prompt=prompt), ask_model, lambda _done: None)
    return Draft(plan, text, Summary.Method.LLM, spent)


def _check_saving(run: Run, plan: Plan, text: str) -> None:
    """Raise Invalid if a summary is no shorter than what it replaces, unless the session is pruned or cleared."""
    tokens = counter_for(plan.session.workspace.model).count(text)
    is_forced = run.options.get("prune") or run.options.get("clear_after")
    if tokens >= plan.original_tokens and not is_forced:
        raise Invalid(
            f"The summary has {tokens:,} tokens, the entries that it replaces {plan.original_tokens:,}.",
            code="saves_nothing",
        )


def _text_by_model(run: Run, plan: Plan, requests: list[Request], model: ModelSettings) -> str:
    """Summarise part by part and record progress and cost. After PromptTooLong the next attempt halves the parts."""

    def ask_model(messages: list[dict[str, str]], limit: int) -> Reply:
        reply = ask(model, messages, max_tokens=limit)
        record_cost(run, messages, reply, reply.text)
        return reply

    def progress(done: int) -> None:
        renew_lease(run, stage=gettext_noop("waiting for the model"), steps_done=done, steps_total=len(requests))

    try:
        return by_model(plan, requests, ask_model, progress)
    except PromptTooLong:
        part = run.options.get("part_tokens", PART_TOKENS)
        run.options["part_tokens"] = max(MIN_PART_TOKENS, part // 2)
        raise


def request_if_due(session: Session, now: datetime) -> Run | None:
    """Request an automatic compression if the session is over its limits.

    Returns None while a run of the session is live, held or parked. After somebody has undone, cancelled or dismissed
    one, the session must first grow by half of its entry limit.
    """
    if not session.workspace.auto_compress or not is_due(session):
        return None
    if is_resting(session, Run.Kind.COMPRESSION, until=session.workspace.max_entries // REJECTION_REST):
        return None
    if plan_compression(session).reason:
        return None
    run, _ = request_run(session, Run.Kind.COMPRESSION, options={}, by=By(UPKEEP, now))
    return run
