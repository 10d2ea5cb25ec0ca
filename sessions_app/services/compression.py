"""Compression: old entries of a session are folded into a summary, and stay readable under it.

Plan (reads) → summarise (the model, or by rule; no transaction) → apply (one short write). A plan is made anew for
each attempt; applying it checks that everything in it still stands as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypedDict

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext, ngettext

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.tokens import counter_for
from sessions_app.models import Entry, Run, Session, Summary
from sessions_app.services.audit import Actor, By, record
from sessions_app.services.context_window import fold_end
from sessions_app.services.entries import lock_session
from sessions_app.services.runs import RunNotFitting, finish_run
from sessions_app.services.totals import recount_session

MAX_SUMMARIES = 8  # side by side; more are folded into one
SUMMARY_SHARE = 4  # summaries may take a quarter of the session's token limit, one of them and all together
MIN_TARGET = 60  # tokens; less says nothing
MAX_ENTRIES = 20_000  # folded by one run


class PlanStale(MemoryHubError):
    """The session changed while the summary was made: what was planned isn't there any more."""

    code = "plan_stale"


class RunOptions(TypedDict, total=False):
    """What a compression was asked for. ``method``: auto, llm or heuristic. ``keep``: entries that stay at the end;
    ``minimum``: fewer are not folded. ``hold``: show the summary before it counts. ``clear_after``: the session
    begins anew once it is folded. ``once``: asked for at a prompt, no second attempt. ``part_tokens``: how much one
    request may quote."""

    method: str
    keep: int
    minimum: int
    hold: bool
    clear_after: bool
    once: bool
    part_tokens: int


@dataclass(frozen=True)
class Plan:
    """What one compression would fold: entries, or summaries of an earlier one. ``reason``: why there is nothing.

    ``original_tokens`` is what the context holds of it now, ``target_tokens`` what the summary should take.
    """

    session: Session
    entries: list[Entry] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    target_tokens: int = 0
    kept: int = 0
    reason: str = ""

    @property
    def original_tokens(self) -> int:
        rows: Sequence[Entry | Summary] = self.entries or self.summaries
        return sum(row.token_count for row in rows)

    @property
    def first_position(self) -> int:
        return min([entry.position for entry in self.entries] + [s.first_position for s in self.summaries])

    @property
    def last_position(self) -> int:
        return max([entry.position for entry in self.entries] + [s.last_position for s in self.summaries])

    @property
    def is_of_summaries(self) -> bool:
        return bool(self.summaries)


def is_due(session: Session) -> bool:
    """Tell whether a session is over its workspace's limit of tokens or of entries (defaults 50,000 and 100)."""
    workspace = session.workspace
    in_context = session.active_tokens + session.summary_tokens
    return in_context > workspace.max_tokens or session.active_entry_count > workspace.max_entries


def plan_compression(session: Session, *, keep: int | None = None, minimum: int | None = None) -> Plan:
    """Decide what to fold. Reads only; ``keep`` and ``minimum`` default to the workspace's settings (10 and 5).

    Entries older than the recent window are folded, whole tool groups only. Where summaries have piled up instead
    (more than 8, or over a quarter of the token limit), they are folded into one, the latest excepted if it can be.
    """
    workspace = session.workspace
    is_archive = keep == 0
    if not is_archive and (piled := _piled_summaries(session)):
        return _planned(Plan(session, summaries=piled))
    keep = workspace.recent_window if keep is None else keep
    minimum = workspace.min_entries_to_compress if minimum is None else minimum
    active = list(_active(session).order_by("position")[: MAX_ENTRIES + keep])
    end = fold_end(active, keep=keep)
    if end < max(1, minimum):
        return Plan(session, kept=len(active), reason=_too_few(end, len(active), keep, max(1, minimum)))
    return _planned(Plan(session, entries=active[:end], kept=len(active) - end))


def _planned(plan: Plan) -> Plan:
    workspace = plan.session.workspace
    wanted = round(plan.original_tokens * workspace.compression_ratio)
    target = max(MIN_TARGET, min(wanted, workspace.max_tokens // SUMMARY_SHARE))
    return Plan(plan.session, plan.entries, plan.summaries, target, plan.kept)


def _too_few(end: int, active: int, keep: int, minimum: int) -> str:
    if not active:
        return gettext("Nothing is in the context that could be folded.")
    stay = ngettext(
        "Of %(count)s active entry the last %(kept)s stay, with whole tool groups.",
        "Of %(count)s active entries the last %(kept)s stay, with whole tool groups.",
        active,
    )
    left = ngettext(
        "%(count)s is left to fold, %(needed)s are needed.",
        "%(count)s are left to fold, %(needed)s are needed.",
        end,
    )
    kept = stay % {"count": active, "kept": min(keep, active)}
    return f"{kept} {left % {'count': end, 'needed': minimum}}"


def _piled_summaries(session: Session) -> list[Summary]:
    standing = list(_standing(session).order_by("first_position", "id"))
    tokens = sum(summary.token_count for summary in standing)
    if len(standing) > MAX_SUMMARIES or tokens * SUMMARY_SHARE > session.workspace.max_tokens:
        return standing[:-1] if len(standing) > 2 else standing
    return []


def _active(session: Session) -> QuerySet[Entry]:
    return Entry.objects.filter(
        session=session, epoch=session.epoch, position__gte=session.last_consolidated, summary=None
    )


def _standing(session: Session) -> QuerySet[Summary]:
    """Return the summaries that the context holds: of the current epoch, folded by none."""
    return Summary.objects.filter(session=session, epoch=session.epoch, parent=None)


@transaction.atomic
def apply_summary(run: Run, plan: Plan, text: str, *, method: str, now: datetime) -> Summary:
    """Commit a plan's summary: entries or summaries linked, totals, run, audit. All of it or nothing.

    Raises PlanStale when the session changed under the plan, LeaseLost when the run isn't this worker's any more.
    """
    session = lock_session(plan.session.pk)
    if session.epoch != plan.session.epoch:
        raise PlanStale(gettext("The session was cleared meanwhile."))
    summary = _create(session, run, plan, text, method, now)
    linked = _link(session, plan, summary)
    if linked != len(plan.entries) + len(plan.summaries):
        raise PlanStale(gettext("Some of what was to be folded isn't in the context any more."))
    before = session.active_tokens + session.summary_tokens
    recount_session(session)
    after = session.active_tokens + session.summary_tokens
    run.epoch, run.from_position, run.to_position = plan.session.epoch, plan.first_position, plan.last_position + 1
    proposal = {"text": text, "method": method, "before": before, "after": after, "summary": summary.pk}
    finish_run(run, status=Run.Status.DONE, now=now, proposal=proposal)
    record(
        By(Actor("run", f"run {run.pk}"), now),
        "session.compressed",
        "summary",
        summary.pk,
        f"{session.key}: #{plan.first_position} to #{plan.last_position} folded, {before:,} → {after:,} tokens",
        workspace=session.workspace,
        session=session,
        detail={"run": run.pk, "entries": summary.entry_count, "before": before, "after": after, "method": method},
    )
    return summary


def _create(session: Session, run: Run, plan: Plan, text: str, method: str, now: datetime) -> Summary:
    times = [entry.occurred_at for entry in plan.entries if entry.occurred_at]
    times += [moment for old in plan.summaries for moment in (old.starts_at, old.ends_at) if moment]
    return Summary.objects.create(
        workspace=session.workspace,
        session=session,
        epoch=session.epoch,
        content=text,
        method=method,
        model=run.model if method == Summary.Method.LLM else "",
        token_count=counter_for(session.workspace.model).count(text),
        original_token_count=sum(old.original_token_count for old in plan.summaries)
        or sum(entry.token_count for entry in plan.entries),
        entry_count=len(plan.entries),
        first_position=plan.first_position,
        last_position=plan.last_position,
        starts_at=min(times, default=None),
        ends_at=max(times, default=None),
        run=run,
        created_at=now,
    )


def _link(session: Session, plan: Plan, summary: Summary) -> int:
    if plan.summaries:
        return _standing(session).filter(pk__in=[old.pk for old in plan.summaries]).update(parent=summary)
    between = _active(session).filter(position__range=(plan.first_position, plan.last_position))
    return between.update(summary=summary)


@transaction.atomic
def undo_compression(run: Run, *, by: By) -> None:
    """Take a compression back: what it folded stands in the context again, its text stays with the run.

    Raises RunNotFitting for a run that folded nothing, was undone, or whose summary a later one folded.
    """
    if run.session_id is None:
        raise RunNotFitting(gettext("The session of this run was deleted."))
    session = lock_session(run.session_id)
    run = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
    summary = Summary.objects.filter(run=run).first()
    if run.kind != Run.Kind.COMPRESSION or run.status != Run.Status.DONE or summary is None:
        raise RunNotFitting(gettext("Run %(number)s has nothing to undo.") % {"number": run.pk})
    if summary.parent_id:
        later = Summary.objects.filter(pk=summary.parent_id).values_list("run_id", flat=True).first()
        words = gettext("A later run folded this summary: undo run %(number)s first.")
        raise RunNotFitting(words % {"number": later})
    Entry.objects.filter(summary=summary).update(summary=None)
    Summary.objects.filter(parent=summary).update(parent=None)
    summary.delete()
    recount_session(session)
    Run.objects.filter(pk=run.pk).update(status=Run.Status.UNDONE, finished_at=by.at)
    record(
        by,
        "run.undone",
        "run",
        run.pk,
        f"Compression {run.pk} undone: #{run.from_position} to #{run.to_position - 1} are in the context again",
        workspace=session.workspace,
        session=session,
    )
