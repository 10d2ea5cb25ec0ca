"""Compressing all sessions of a workspace that are due, or some of them: each by a run of its own, one by one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import F, Q, QuerySet

from memoryhub.jobs.progress import JobCancelled
from memoryhub.lib.llm import ModelSettings
from memoryhub.runs.executing import execute
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.model_choice import cost_of
from sessions_app.services.runs import RunNotFitting, cancel_run, request_run
from sessions_app.services.summarising import PART_TOKENS

LOOK_SECONDS = 0.2
RULES_TOKENS = 300  # of a request, beside what it quotes


@dataclass(frozen=True)
class Outlook:
    """About what compressing all that is due would do: tokens are estimates from the sessions' totals.

    ``cost`` in US dollars; None where the model's price isn't known, or no model is asked.
    """

    sessions: int
    entries: int
    before: int
    after: int
    requests: int
    cost: Decimal | None


def due_sessions(workspace: Workspace) -> QuerySet[Session]:
    """Return the sessions that are over their workspace's limit of tokens or of entries, in order."""
    sessions = Session.objects.filter(workspace=workspace).annotate(
        context_tokens=F("active_tokens") + F("summary_tokens")
    )
    over = Q(context_tokens__gt=workspace.max_tokens) | Q(active_entry_count__gt=workspace.max_entries)
    return sessions.filter(over).order_by("id")


def outlook(workspace: Workspace, model: ModelSettings | None) -> Outlook:
    """Say about what compressing all sessions that are due would fold and cost. One query; no entry is read."""
    names = ("active_tokens", "summary_tokens", "active_entry_count")
    rows = due_sessions(workspace).values_list(*names)
    figures = [_estimate(workspace, *row) for row in rows]
    before = sum(active + summaries for active, summaries, _ in rows)
    folded, written = sum(one[0] for one in figures), sum(one[1] for one in figures)
    requests = sum(one[2] for one in figures)
    cost = cost_of(model.model, folded + requests * RULES_TOKENS, written) if model else None
    return Outlook(len(rows), sum(row[2] for row in rows), before, before - folded + written, requests, cost)


def _estimate(workspace: Workspace, active: int, summaries: int, entries: int) -> tuple[int, int, int]:
    """Return the tokens that a compression folds and writes, and in how many requests, if entries are alike."""
    if entries <= workspace.recent_window:  # summaries piled up: they are folded into one
        folded = summaries
    else:
        folded = active * (entries - workspace.recent_window) // entries
    target = min(round(folded * workspace.compression_ratio), workspace.max_tokens // 4)
    return folded, target, max(1, -(-folded // PART_TOKENS))


def compress_sessions(
    sessions: Sequence[int],
    *,
    options: dict[str, Any],
    counts: Counter[str],
    actor: Actor,
    clock: Callable[[], datetime],
    note: Callable[[Run, int], None],
    look: Callable[[], None],
) -> Iterable[Run]:
    """Compress sessions by their keys one after another, yielding each run as it ended; ``counts`` grows by outcome.

    ``note`` hears of each run before it begins, and of the number of all; ``look`` is called in a wait. Both may
    break it off. Outcomes: done, held, nothing_due, cancelled, and failed, which is also what was parked or is tried
    again later. A session that was deleted meanwhile is passed over.
    """
    total = counts.total() + len(sessions)
    for session in Session.objects.filter(pk__in=sessions).select_related("workspace").order_by("id"):
        run, _ = request_run(session, Run.Kind.COMPRESSION, options=options, by=By(actor, clock()))
        try:
            note(run, total)
        except JobCancelled:
            with suppress(RunNotFitting):
                cancel_run(run, by=By(actor, clock()))
            raise
        done = _completed(run, clock, look)
        counts[_outcome(done)] += 1
        yield done


def _completed(run: Run, clock: Callable[[], datetime], look: Callable[[], None]) -> Run:
    """Carry a run out here, or wait for the worker that has it, but not for another attempt that is minutes away."""
    while (done := execute(run.pk, now=clock)) is None:
        found = Run.objects.filter(pk=run.pk).first()
        if found is None or not found.is_live:
            return found or run
        if found.status == Run.Status.QUEUED and found.not_before > clock():
            return found
        look()
        time.sleep(LOOK_SECONDS)
    return done


def _outcome(run: Run) -> str:
    if run.status == Run.Status.DONE and run.proposal.get("nothing_due"):
        return "nothing_due"
    known = {Run.Status.DONE: "done", Run.Status.HELD: "held", Run.Status.CANCELLED: "cancelled"}
    return known.get(Run.Status(run.status), "failed")
