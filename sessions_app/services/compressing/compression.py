"""Compression: replace old entries of a session by a summary in the context; the entries stay readable.

Plan (reads) → summarise (model or heuristic; no transaction) → apply (one short write). Each attempt makes a new
plan; applying it checks that its entries are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypedDict

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext, ngettext

from memoryhub.lib.errors import Conflict
from memoryhub.lib.tokens import counter_for
from sessions_app.models import Entry, Run, Session, Summary
from sessions_app.services.audit import Actor, By, record
from sessions_app.services.context_window import fold_end, last_safe_cut
from sessions_app.services.entries import lock_session
from sessions_app.services.runs import RunNotFitting, finish_run
from sessions_app.services.totals import recount_session

MAX_SUMMARIES = 8  # in the context; more are merged into one
SUMMARY_SHARE = 4  # a summary, and all together, may take a quarter of the session's token limit
MIN_TARGET = 60  # tokens
MAX_ENTRIES = 20_000  # per run


class RunOptions(TypedDict, total=False):
    """Options of a compression.

    ``method``: auto, llm or heuristic. ``keep``: entries to keep at the end. ``minimum``: fewest entries to
    summarise. ``prune``: shorten to a window, however long the summary. ``hold``: review the summary first.
    ``clear_after``: restart the session afterwards. ``once``: don't retry (started by a command). ``part_tokens``:
    most tokens to quote in one request.
    """

    method: str
    keep: int
    minimum: int
    prune: bool
    hold: bool
    clear_after: bool
    once: bool
    prompt: str
    part_tokens: int


@dataclass(frozen=True)
class Plan:
    """What a compression would summarise: entries, or earlier summaries. ``reason``: why there is nothing.

    ``original_tokens``: their tokens in the context; ``target_tokens``: the size of the summary.
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
    """Tell whether a session is over its workspace's token or entry limit (defaults: 50,000 and 100)."""
    workspace = session.workspace
    in_context = session.active_tokens + session.summary_tokens
    return in_context > workspace.max_tokens or session.active_entry_count > workspace.max_entries


def plan_compression(
    session: Session,
    *,
    keep: int | None = None,
    minimum: int | None = None,
    prune: bool = False,
    read: Callable[[Session, int], list[Entry]] | None = None,
) -> Plan:
    """Decide what to summarise. Reads only; ``keep`` and ``minimum`` default to the workspace's settings (10 and 5).

    Selects entries older than the recent window, in whole tool groups. If summaries have accumulated (more than 8, or
    over a quarter of the token limit), merges those instead, except the latest if possible. ``prune``: select exactly
    the entries before the last ``keep``, as Grip's prune_to_window does, and never summaries. ``read``: reads the
    first active entries, up to a number; a preview doesn't need all their columns.
    """
    workspace = session.workspace
    is_archive = keep == 0
    if not (is_archive or prune) and (accumulated := _accumulated_summaries(session)):
        return _planned(Plan(session, summaries=accumulated))
    keep = workspace.recent_window if keep is None else keep
    minimum = workspace.min_entries_to_compress if minimum is None else minimum
    active = (read or _first_active)(session, MAX_ENTRIES + keep)
    end = last_safe_cut(active, max(0, len(active) - keep)) if prune else fold_end(active, keep=keep)
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
        return gettext("The context has no entries to summarise.")
    stay = ngettext(
        "%(count)s active entry; the last %(kept)s are kept, in whole tool groups.",
        "%(count)s active entries; the last %(kept)s are kept, in whole tool groups.",
        active,
    )
    left = ngettext(
        "%(count)s is left to summarise; %(needed)s are needed.",
        "%(count)s are left to summarise; %(needed)s are needed.",
        end,
    )
    kept = stay % {"count": active, "kept": min(keep, active)}
    return f"{kept} {left % {'count': end, 'needed': minimum}}"


def _accumulated_summaries(session: Session) -> list[Summary]:
    current = list(_context_summaries(session).order_by("first_position", "id"))
    tokens = sum(summary.token_count for summary in current)
    if len(current) > MAX_SUMMARIES or tokens * SUMMARY_SHARE > session.workspace.max_tokens:
        return current[:-1] if len(current) > 2 else current
    return []


def _first_active(session: Session, most: int) -> list[Entry]:
    return list(active_entries(session).order_by("position")[:most])


def active_entries(session: Session) -> QuerySet[Entry]:
    """Return the entries in the context: of the current epoch, from the pointer on, without a summary."""
    return Entry.objects.in_conversation().filter(
        session=session, epoch=session.epoch, position__gte=session.last_consolidated, summary=None
    )


def _context_summaries(session: Session) -> QuerySet[Summary]:
    """Return the summaries in the context: of the current epoch, not merged into another."""
    return Summary.objects.filter(session=session, epoch=session.epoch, parent=None)


@transaction.atomic
def apply_summary(run: Run, plan: Plan, text: str, *, method: str, now: datetime) -> Summary:
    """Commit a summary in one transaction: links, totals, run, audit record.

    Raises Conflict if the session changed after planning, LeaseLost if another worker holds the run.
    """
    session = lock_session(plan.session.pk)
    if session.epoch != plan.session.epoch:
        raise Conflict(gettext("The session was cleared in the meantime."), code="plan_stale")
    summary = _create(session, run, plan, text, method, now)
    linked = _link(session, plan, summary)
    if linked != len(plan.entries) + len(plan.summaries):
        raise Conflict(gettext("Some of the entries to summarise are no longer in the context."), code="plan_stale")
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
        f"{session.key}: messages #{plan.first_position} to #{plan.last_position} summarised, "
        f"{before:,} → {after:,} tokens",
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
        return _context_summaries(session).filter(pk__in=[old.pk for old in plan.summaries]).update(parent=summary)
    between = active_entries(session).filter(position__range=(plan.first_position, plan.last_position))
    return between.update(summary=summary)


@transaction.atomic
def undo_compression(run: Run, *, by: By) -> None:
    """Undo a compression: its entries return to the context; the run keeps the summary's text.

    Raises RunNotFitting for a run without a summary, one already undone, or one whose summary was merged later.
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
        words = gettext("A later run merged this summary. Undo run %(number)s first.")
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
