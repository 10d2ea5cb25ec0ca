"""Carry out extraction runs: ask a model for the observations in an agent's outputs, then store them at once."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext_noop

from knowledge_app.services.documents.model_replies import read_observations
from knowledge_app.services.prompts import EXTRACT_REQUEST, EXTRACT_RULES
from knowledge_app.services.rows.observations import MAX_CHARS, NewObservation, store
from memoryhub.find_by_name import session_of
from memoryhub.lib.content_check.precheck import findings_in
from memoryhub.lib.database import db_retry
from memoryhub.lib.llm import ModelRefused, ModelSettings, ask
from memoryhub.lib.text.reply_faults import check_reply, keep_reply
from memoryhub.lib.validation import clean_text
from sessions_app.models import Entry, Run, Session, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.compressing.model_choice import model_for
from sessions_app.services.compressing.token_budget import record_cost, within_budget
from sessions_app.services.runs import finish_run, is_resting, renew_lease, request_run

UPKEEP = Actor("run", "automatic extraction")
MIN_CHARS = 50  # shorter outputs are skipped, as grid does
MAX_OUTPUT_CHARS = 4_000  # that the model reads
REPLY_TOKENS = 1_024
MAX_OUTPUTS = 20  # per run


@dataclass(frozen=True)
class Output:
    """The output of one step. ``source``: "GOAL:step-name", or the session's key."""

    text: str
    source: str


def request_extraction(workspace: Workspace, text: str, *, source: str, by: By) -> Run:
    """Request an extraction from one output. It isn't retried."""
    return Run.objects.create(
        workspace=workspace,
        kind=Run.Kind.EXTRACTION,
        options={"text": clean_text(text)[:MAX_OUTPUT_CHARS], "source": source, "once": True},
        requested_by=by.actor.name[:200],
        not_before=by.at,
        created_at=by.at,
    )


def request_if_due(session: Session, now: datetime) -> Run | None:
    """Request an extraction of a session's new outputs if the workspace has enabled it. Leaves out agents' own."""
    workspace = session.workspace
    if not workspace.auto_extract or workspace.path or session.is_own or extraction_model(workspace) is None:
        return None
    if is_resting(session, Run.Kind.EXTRACTION, until=1) or not _new_outputs(session)[0]:
        return None
    run, _ = request_run(session, Run.Kind.EXTRACTION, options={}, by=By(UPKEEP, now))
    return run


def extraction_model(workspace: Workspace) -> ModelSettings | None:
    return model_for(workspace, wanted=workspace.extraction_model)


def _new_outputs(session: Session) -> tuple[list[Output], int, int]:
    """Return the agent's messages since the last extraction, oldest first, and the positions [from, to) read."""
    done = Run.objects.filter(
        session=session, kind=Run.Kind.EXTRACTION, epoch=session.epoch, status=Run.Status.DONE
    ).order_by("-to_position")
    start = done.values_list("to_position", flat=True).first() or 0
    messages = Entry.objects.in_conversation().filter(
        session=session, epoch=session.epoch, position__gte=start, role="assistant", kind=Entry.Kind.MESSAGE
    )
    outputs: list[Output] = []
    end = start
    for entry in messages.order_by("position")[: MAX_OUTPUTS * 5]:
        if len(entry.content) >= MIN_CHARS:
            outputs.append(Output(entry.content, str(entry.extra.get("source") or session.key)))
        end = entry.position + 1
        if len(outputs) == MAX_OUTPUTS:
            break
    return outputs, start, end


def carry_out(run: Run, *, now: Callable[[], datetime]) -> None:
    """Extract the observations of a claimed run. Raises MemoryHubError and stores nothing if it can't."""
    outputs = _outputs_of(run)
    if not outputs:
        _finish(run, now(), {"nothing_due": f"outputs of fewer than {MIN_CHARS} characters are skipped"})
        return
    model = extraction_model(run.workspace)
    if model is None:
        raise ModelRefused(
            "No model is connected. Connect one in the hub's settings, or set MEMORYHUB_LLM_MODEL.",
            code="model_not_set",
        )
    requests = [messages_for(output) for output in outputs]
    everything = [message for messages, _ in requests for message in messages]
    if not within_budget(run, run.workspace, everything, now()):
        return
    found: list[NewObservation] = []
    for number, (output, (messages, mark)) in enumerate(zip(outputs, requests, strict=True)):
        renew_lease(run, stage=gettext_noop("waiting for the model"), steps_done=number, steps_total=len(outputs))
        reply = ask(model, messages, max_tokens=REPLY_TOKENS)
        record_cost(run, messages, reply, reply.text)
        with keep_reply(reply.text):
            check_reply(reply.text, messages[0]["content"], messages[1]["content"])
            found += [
                NewObservation(kind, text, output.source) for kind, text in read_observations(reply.text, mark=mark)
            ]
    renew_lease(run, stage=gettext_noop("writing"))
    _commit(run, found, now())


def _outputs_of(run: Run) -> list[Output]:
    if "text" in run.options:
        text = run.options["text"]
        return [Output(text, run.options["source"])] if len(text) >= MIN_CHARS else []
    session = session_of(run)
    outputs, run.from_position, run.to_position = _new_outputs(session)
    run.epoch = session.epoch
    return outputs


def messages_for(output: Output) -> tuple[list[dict[str, str]], str]:
    """Return the request for one output, and the random mark that delimits the quoted output in it."""
    mark = f"=== {secrets.token_hex(8)} ==="
    request = EXTRACT_REQUEST.format(
        source=output.source or "unnamed", mark=mark, text=output.text[:MAX_OUTPUT_CHARS]
    )
    rules = EXTRACT_RULES.replace("MARK", mark)
    return [{"role": "system", "content": rules}, {"role": "user", "content": request}], mark


@db_retry.retried
@transaction.atomic
def _commit(run: Run, found: list[NewObservation], now: datetime) -> None:
    safe = [one for one in found if len(one.content) <= MAX_CHARS and not _is_flagged(one)]
    stored = store(run.workspace, safe, by=By(Actor("run", f"run {run.pk}"), now), run=run)
    proposal: dict[str, Any] = {
        "added": [row.pk for row in stored.added],
        "offered": [row.pk for row in stored.offered],
        "left_out": len(found) - len(safe),
    }
    _finish(run, now, proposal)


def _is_flagged(one: NewObservation) -> bool:
    return bool(findings_in(one.content) or findings_in(one.source))  # the source may be an agent's text


@transaction.atomic
def _finish(run: Run, now: datetime, proposal: dict[str, Any]) -> None:
    finish_run(run, status=Run.Status.DONE, now=now, proposal=proposal)
