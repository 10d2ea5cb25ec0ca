"""Extraction: a small model reads what a step of an agent put out, and its observations are stored.

Plan (which outputs) → ask (one by one, no transaction) → apply (one transaction). A failure stores nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext_noop

from knowledge_app.services.documents.replies import read_observations
from knowledge_app.services.prompts import EXTRACT_REQUEST, EXTRACT_RULES
from knowledge_app.services.rows.observations import MAX_CHARS, NewObservation, store
from memoryhub.lib import db_retry
from memoryhub.lib.llm import ModelRefused, ModelSettings, ask
from memoryhub.lib.text.change_guard import INVISIBLE, is_instruction
from memoryhub.lib.validation import clean_text
from memoryhub.lookup import session_of
from sessions_app.models import Entry, Run, Session, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.model_choice import model_for
from sessions_app.services.runs import finish_run, is_resting, renew_lease, request_run
from sessions_app.services.token_budget import record_cost, within_budget

UPKEEP = Actor("run", "automatic extraction")
LEAST_CHARS = 50  # a shorter output says nothing worth a question (grid's rule)
MOST_CHARS = 4_000  # of an output that the model reads
REPLY_TOKENS = 1_024
MAX_OUTPUTS = 20  # read by one run of a session


@dataclass(frozen=True)
class Output:
    """What one step put out. ``source``: "GOAL:step-name", or the session that it was said in."""

    text: str
    source: str


def request_extraction(workspace: Workspace, text: str, *, source: str, by: By) -> Run:
    """Ask for the observations of one output, at a prompt: no second attempt is made by itself."""
    return Run.objects.create(
        workspace=workspace,
        kind=Run.Kind.EXTRACTION,
        options={"text": clean_text(text)[:MOST_CHARS], "source": source, "once": True},
        requested_by=by.actor.name[:200],
        not_before=by.at,
        created_at=by.at,
    )


def request_if_due(session: Session, now: datetime) -> Run | None:
    """Ask for the extraction of what a session's agent said since the last one, where the workspace wants that."""
    workspace = session.workspace
    if not workspace.auto_extract or workspace.path or extraction_model(workspace) is None:
        return None
    if is_resting(session, Run.Kind.EXTRACTION, until=1) or not _new_outputs(session)[0]:
        return None
    run, _ = request_run(session, Run.Kind.EXTRACTION, options={}, by=By(UPKEEP, now))
    return run


def extraction_model(workspace: Workspace) -> ModelSettings | None:
    return model_for(workspace, wanted=workspace.extraction_model)


def _new_outputs(session: Session) -> tuple[list[Output], int, int]:
    """Return what the agent said since the last extraction, oldest first, and the positions [from, to) read."""
    done = Run.objects.filter(
        session=session, kind=Run.Kind.EXTRACTION, epoch=session.epoch, status=Run.Status.DONE
    ).order_by("-to_position")
    start = done.values_list("to_position", flat=True).first() or 0
    said = Entry.objects.filter(
        session=session, epoch=session.epoch, position__gte=start, role="assistant", kind=Entry.Kind.MESSAGE
    )
    outputs: list[Output] = []
    end = start
    for entry in said.order_by("position")[: MAX_OUTPUTS * 5]:
        if len(entry.content) >= LEAST_CHARS:
            outputs.append(Output(entry.content, str(entry.extra.get("source") or session.key)))
        end = entry.position + 1
        if len(outputs) == MAX_OUTPUTS:
            break
    return outputs, start, end


def carry_out(run: Run, *, now: Callable[[], datetime]) -> None:
    """Extract what a claimed run is about. Raises MemoryHubError where it can't; then nothing was stored."""
    outputs = _outputs_of(run)
    if not outputs:
        words = f"an output of fewer than {LEAST_CHARS} characters holds nothing to extract"
        _finish(run, now(), {"nothing_due": words})
        return
    model = extraction_model(run.workspace)
    if model is None:
        raise ModelRefused(
            "No model is set: set MEMORYHUB_LLM_MODEL and MEMORYHUB_LLM_BASE_URL to extract.", code="model_not_set"
        )
    requests = [messages_for(output) for output in outputs]
    everything = [message for messages, _ in requests for message in messages]
    if not within_budget(run, run.workspace, everything, now()):
        return
    said: list[NewObservation] = []
    for number, (output, (messages, mark)) in enumerate(zip(outputs, requests, strict=True)):
        renew_lease(run, stage=gettext_noop("waiting for the model"), steps_done=number, steps_total=len(outputs))
        reply = ask(model, messages, max_tokens=REPLY_TOKENS)
        record_cost(run, messages, reply, reply.text)
        said += [NewObservation(kind, text, output.source) for kind, text in read_observations(reply.text, mark=mark)]
    renew_lease(run, stage=gettext_noop("writing"))
    _commit(run, said, now())


def _outputs_of(run: Run) -> list[Output]:
    if "text" in run.options:
        text = run.options["text"]
        return [Output(text, run.options["source"])] if len(text) >= LEAST_CHARS else []
    session = session_of(run)
    outputs, run.from_position, run.to_position = _new_outputs(session)
    run.epoch = session.epoch
    return outputs


def messages_for(output: Output) -> tuple[list[dict[str, str]], str]:
    """Return the request for one output, cut at 4,000 characters, and the mark that stands around what it quotes."""
    mark = f"=== {secrets.token_hex(8)} ==="
    asked = EXTRACT_REQUEST.format(source=output.source or "without a name", mark=mark, text=output.text[:MOST_CHARS])
    rules = EXTRACT_RULES.replace("MARK", mark)
    return [{"role": "system", "content": rules}, {"role": "user", "content": asked}], mark


@db_retry.retried
@transaction.atomic
def _commit(run: Run, said: list[NewObservation], now: datetime) -> None:
    safe = [one for one in said if len(one.content) <= MAX_CHARS and _is_safe(one.content)]
    stored = store(run.workspace, safe, by=By(Actor("run", f"run {run.pk}"), now), run=run)
    proposal: dict[str, Any] = {
        "added": [row.pk for row in stored.added],
        "offered": [row.pk for row in stored.offered],
        "left_out": len(said) - len(safe),
    }
    _finish(run, now, proposal)


def _is_safe(text: str) -> bool:
    return not is_instruction(text) and not INVISIBLE.search(text)


@transaction.atomic
def _finish(run: Run, now: datetime, proposal: dict[str, Any]) -> None:
    finish_run(run, status=Run.Status.DONE, now=now, proposal=proposal)
