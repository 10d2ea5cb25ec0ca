"""Compress many sessions of a workspace, one run each."""

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
from sessions_app.services.compressing.model_choice import cost_of
from sessions_app.services.compressing.summarising import PART_TOKENS
from sessions_app.services.runs import RunNotFitting, cancel_run, request_run

POLL_SECONDS = 0.2
RULES_TOKENS = 300  # of each request, besides the quoted conversation


@dataclass(frozen=True)
class CompressionEstimate:
    """The estimated effect of compressing all due sessions. Token counts are derived from the sessions' totals.

    ``cost`` is in US dollars, None without a model or a known price.
    """

    sessions: int
    entries: int
    before: int
    after: int
    requests: int
    cost: Decimal | None


def due_sessions(workspace: Workspace) -> QuerySet[Session]:
    """Return the sessions over their workspace's token or entry limit, ordered by id."""
    sessions = Session.objects.filter(workspace=workspace).annotate(
        context_tokens=F("active_tokens") + F("summary_tokens")
    )
    over = Q(context_tokens__gt=workspace.max_tokens) | Q(active_entry_count__gt=workspace.max_entries)
    return sessions.filter(over).order_by("id")


def estimate_compression(workspace: Workspace, model: ModelSettings | None) -> CompressionEstimate:
    """Estimate the effect and cost of compressing all due sessions, in one query."""
    names = ("active_tokens", "summary_tokens", "active_entry_count")
    rows = due_sessions(workspace).values_list(*names)
    estimates = [_estimate(workspace, *row) for row in rows]
    before = sum(active + summaries for active, summaries, _ in rows)
    folded, written = sum(one[0] for one in estimates), sum(one[1] for one in estimates)
    requests = sum(one[2] for one in estimates)
    cost = cost_of(model.model, folded + requests * RULES_TOKENS, written) if model else None
    return CompressionEstimate(
        len(rows), sum(row[2] for row in rows), before, before - folded + written, requests, cost
    )


def _estimate(workspace: Workspace, active: int, summaries: int, entries: int) -> tuple[int, int, int]:
    """Return (tokens replaced, tokens written, requests), assuming entries of equal size."""
    if entries <= workspace.recent_window:  # only the summaries are merged
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
    on_start: Callable[[Run, int], None],
    on_wait: Callable[[], None],
) -> Iterable[Run]:
    """Compress sessions by primary key, one after another, yielding each finished run; adds outcomes to ``counts``.

    ``on_start`` gets each run and the total before the run begins, ``on_wait`` is called while waiting; both may
    raise JobCancelled. The outcomes are done, held, nothing_due, cancelled and failed; parked runs and runs that will
    be retried count as failed. Sessions deleted in the meantime are skipped.
    """
    total = counts.total() + len(sessions)
    for session in Session.objects.filter(pk__in=sessions).select_related("workspace").order_by("id"):
        run, _ = request_run(session, Run.Kind.COMPRESSION, options=options, by=By(actor, clock()))
        try:
            on_start(run, total)
        except JobCancelled:
            with suppress(RunNotFitting):
                cancel_run(run, by=By(actor, clock()))
            raise
        done = _completed(run, clock, on_wait)
        counts[_outcome(done)] += 1
        yield done


def _completed(run: Run, clock: Callable[[], datetime], on_wait: Callable[[], None]) -> Run:
    """Execute a run, or wait for the worker that claimed it. Doesn't wait for a later attempt."""
    while (done := execute(run.pk, now=clock)) is None:
        found = Run.objects.filter(pk=run.pk).first()
        if found is None or not found.is_live:
            return found or run
        if found.status == Run.Status.QUEUED and found.not_before > clock():
            return found
        on_wait()
        time.sleep(POLL_SECONDS)
    return done


def _outcome(run: Run) -> str:
    if run.status == Run.Status.DONE and run.proposal.get("nothing_due"):
        return "nothing_due"
    known = {Run.Status.DONE: "done", Run.Status.HELD: "held", Run.Status.CANCELLED: "cancelled"}
    return known.get(Run.Status(run.status), "failed")
