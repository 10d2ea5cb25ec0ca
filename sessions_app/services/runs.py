"""The life cycle of a run: requested, claimed, finished. Every change is a compare-and-set with an audit record.

A worker holds a run by a lease that outlasts the model's timeout. When the lease expires or the worker dies, another
worker can claim the run; that raises its fencing number, so the first worker can no longer commit.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce, Now
from django.utils.functional import Promise
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.database import db_retry
from memoryhub.lib.database.prepared import PreparedRows
from memoryhub.lib.errors import Conflict, MemoryHubError
from memoryhub.models import Process
from memoryhub.processes import expired, is_alive_here, renew_known_lease
from sessions_app.models import Entry, Run, Session, Workspace
from sessions_app.models.runs import UNSETTLED_STATUSES
from sessions_app.services.audit import Actor, By, record
from sessions_app.services.entries import lock_session
from sessions_app.services.lifecycle import restart_session

MAX_REPLY = 20_000  # characters kept of a refused reply
MAX_FAILURES = 3  # attempts before a run is parked
MAX_TAKEOVERS = 10  # workers that died during a run before it is parked
PAUSES = (timedelta(minutes=2), timedelta(minutes=10))  # before the second and the third attempt
LEASE_MARGIN = timedelta(seconds=30)
WORKER = Actor("run", "the worker")
UNFIT: dict[str, Promise | str] = {
    "run.approved": _("Run %(number)s is %(state)s and can't be approved."),
    "run.reopened": _("Run %(number)s is %(state)s and can't be held again."),
    "run.cancelled": _("Run %(number)s is %(state)s and can't be cancelled."),
    "run.retried": _("Run %(number)s is %(state)s and can't be retried."),
    "run.dismissed": _("Run %(number)s is %(state)s and can't be dismissed."),
}
_LATEST = PreparedRows(
    3, lambda session, kind, epoch: Run.objects.filter(session=session, kind=kind, epoch=epoch).order_by("-id")[:1]
)


class LeaseLost(MemoryHubError):
    """The run was cancelled or taken over; this attempt must not commit."""

    code = "lease_lost"


class RunNotFitting(Conflict):
    """The run's state doesn't allow the action."""

    code = "run_not_fitting"


@db_retry.retried
@transaction.atomic
def request_run(session: Session, kind: str, *, options: dict[str, Any], by: By) -> tuple[Run, bool]:
    """Return the queued run of this kind, and whether it is new; merges options into an existing one."""
    session = lock_session(session.pk)
    waiting = Run.objects.filter(session=session, kind=kind, status=Run.Status.QUEUED).first()
    if waiting:
        waiting.options |= options
        waiting.not_before = min(waiting.not_before, by.at)
        waiting.save(update_fields=["options", "not_before"])
        return waiting, False
    run = Run.objects.create(
        workspace=session.workspace,
        session=session,
        kind=kind,
        epoch=session.epoch,
        options=options,
        not_before=by.at,
        requested_by=by.actor.name[:200],
        created_at=by.at,
    )
    _audit(run, by, "run.requested", "was requested")
    return run, True


def claim_run(pk: int, *, owner: str, now: datetime) -> Run | None:
    """Claim a queued run; None if it isn't due or its session has another run running."""
    try:
        return _claim(pk, owner, now)
    except IntegrityError:  # another run of the session started concurrently
        return None


@db_retry.retried
@transaction.atomic
def _claim(pk: int, owner: str, now: datetime) -> Run | None:
    run = (
        Run.objects.select_for_update(of=("self",))
        .filter(pk=pk, status=Run.Status.QUEUED, not_before__lte=now)
        .first()
    )
    busy = Run.objects.filter(status=Run.Status.RUNNING, session__isnull=False)
    if run is None or busy.filter(session=run.session_id).exists():
        return None
    run.status = Run.Status.RUNNING
    run.lease_owner, run.fencing_number = owner, run.fencing_number + 1
    run.started_at, run.stage, run.error, run.error_code = now, "reading", "", ""
    run.steps_done = run.steps_total = 0
    run.save()
    renew_lease(run)
    renew_known_lease()
    _audit(run, By(WORKER, now), "run.started", "started")
    return run


@db_retry.retried
def renew_lease(run: Run, *, stage: str = "", steps_done: int = 0, steps_total: int = 0) -> None:
    """Extend the lease by the database's clock and record progress. Raises LeaseLost."""
    lease = timedelta(seconds=settings.MEMORYHUB_LLM_TIMEOUT_SECONDS) + LEASE_MARGIN
    values: dict[str, Any] = {"lease_expires_at": Now() + lease}
    if stage:
        values |= {"stage": stage, "steps_done": steps_done, "steps_total": steps_total}
    if not _mine(run).update(**values):
        raise LeaseLost(gettext("The run was cancelled or taken over."))


def _mine(run: Run) -> Any:
    return Run.objects.filter(pk=run.pk, status=Run.Status.RUNNING, fencing_number=run.fencing_number)


def hold_lease(run: Run) -> Run:
    """Lock the run for the commit in this transaction. Raises LeaseLost if another worker holds it."""
    locked: Run | None = _mine(run).select_for_update().first()
    if locked is None:
        raise LeaseLost(gettext("The run was cancelled or taken over."))
    return locked


def finish_run(run: Run, *, status: str, now: datetime, proposal: dict[str, Any] | None = None) -> None:
    """Finish a run that this worker holds, in the transaction of its changes. Raises LeaseLost."""
    held = hold_lease(run)
    held.status, held.finished_at, held.stage = status, now, ""
    held.lease_owner, held.lease_expires_at = "", None
    held.attempt_count = 0
    if proposal is not None:
        held.proposal = proposal
    for name in ("epoch", "from_position", "to_position", "model", "prompt_tokens", "completion_tokens", "cost"):
        setattr(held, name, getattr(run, name))
    held.save()
    words = "waits for a decision" if status == Run.Status.HELD else "is done"
    _audit(held, By(WORKER, now), "run.finished", words, tokens=held.total_tokens)


@transaction.atomic
def finish_nothing_due(run: Run, session: Session, reason: str, *, now: datetime) -> None:
    """Finish a run that found nothing to do; one that clears the session does, unless it was cleared since."""
    locked = lock_session(session.pk)
    finish_run(run, status=Run.Status.DONE, now=now, proposal={"nothing_due": reason})
    if run.options.get("clear_after") and locked.epoch == session.epoch:
        restart_session(locked, by=By(Actor("run", f"run {run.pk}"), now))


@db_retry.retried
@transaction.atomic
def fail_run(run: Run, error: MemoryHubError, *, now: datetime, is_transient: bool) -> None:
    """Record a failed attempt: retry later, or park the run with its reason. Its cost is kept.

    A run started by a command isn't retried: the user sees the error. Does nothing if the lease was lost.
    """
    held = _mine(run).select_for_update().first()
    if held is None:
        return
    held.attempt_count += 1
    held.error_code, held.error = error.code, error.message
    held.prompt_tokens, held.completion_tokens, held.cost = run.prompt_tokens, run.completion_tokens, run.cost
    held.model, held.options = run.model, run.options
    if reply := error.details.get("reply"):
        held.proposal = held.proposal | {"reply": str(reply)[:MAX_REPLY]}
    held.lease_owner, held.lease_expires_at, held.stage = "", None, ""
    if held.options.get("once"):
        held.status, held.finished_at, words = Run.Status.FAILED, now, "failed"
    elif not is_transient or held.attempt_count >= MAX_FAILURES:
        held.status, held.finished_at, words = Run.Status.PARKED, now, "is parked"
    else:
        pause = PAUSES[held.attempt_count - 1] * random.uniform(0.8, 1.2)  # noqa: S311  jitter, no secret
        held.status, held.not_before, words = Run.Status.QUEUED, now + pause, "failed and is tried again later"
    try:
        with transaction.atomic():
            held.save()
    except IntegrityError:  # another of its kind was requested in the meantime
        held.status, held.finished_at, words = Run.Status.FAILED, now, "failed"
        held.save()
    _audit(held, By(WORKER, now), "run.failed", words, error=error.code)


def postpone_run(run: Run, *, until: datetime, why: str) -> None:
    """Return a run to the queue for later, without counting an attempt."""
    _mine(run).update(status=Run.Status.QUEUED, not_before=until, stage=why, lease_owner="", lease_expires_at=None)


def claim_held_run(run: Run, *, owner: str, by: By) -> Run:
    """Claim a held run in the transaction that commits it. Raises RunNotFitting."""
    return _move(
        run,
        (Run.Status.HELD,),
        by,
        "run.approved",
        "was approved",
        status=Run.Status.RUNNING,
        lease_owner=owner,
        fencing_number=run.fencing_number + 1,
    )


def hold_run_again(run: Run, proposal: dict[str, Any], *, by: By) -> Run:
    """Hold a run again whose approval or rejection was undone. Raises RunNotFitting."""
    states = (Run.Status.CANCELLED, Run.Status.UNDONE)
    later = Run.objects.filter(session=run.session_id, kind=run.kind, epoch=run.epoch, pk__gt=run.pk)
    if "end" not in proposal or later.exclude(status__in=(*states, Run.Status.FAILED)).exists():
        raise RunNotFitting(gettext("The session was consolidated again in the meantime."))
    return _move(
        run, states, by, "run.reopened", "waits for a decision again", status=Run.Status.HELD, proposal=proposal
    )


def cancel_run(run: Run, *, by: By) -> Run:
    """Cancel a live, held or parked run; a late reply is discarded. Raises RunNotFitting."""
    return _move(
        run, UNSETTLED_STATUSES, by, "run.cancelled", "was cancelled", status=Run.Status.CANCELLED, finished_at=by.at
    )


def retry_run(run: Run, *, by: By, **options_update: Any) -> Run:
    """Queue a parked, failed or cancelled run again, with more options. Raises RunNotFitting.

    ``method="heuristic"`` runs without a model: a compression by rule, a consolidation by archiving the entries as
    they are (``note``: with the note in their place). Permanent deletions and agents' proposals can't be retried.
    """
    if run.kind == Run.Kind.EDIT and run.origin == Run.Origin.AGENT:
        raise RunNotFitting(gettext("An agent's proposal can't be tried again. Make the change yourself."))
    if run.options.get("action") == "delete":
        words = gettext("Deletions can't be retried. Ask an operator to select the remaining sessions.")
        raise RunNotFitting(words)
    states = (Run.Status.PARKED, Run.Status.FAILED, Run.Status.CANCELLED)
    options = {name: value for name, value in run.options.items() if name != "once"}
    options |= options_update
    return _move(
        run,
        states,
        by,
        "run.retried",
        "is tried again",
        status=Run.Status.QUEUED,
        not_before=by.at,
        attempt_count=0,
        fencing_number=run.fencing_number + 1,
        error="",
        error_code="",
        finished_at=None,
        options=options,
    )


def dismiss_run(run: Run, *, note: str, by: By) -> Run:
    """Close a parked run with a note. Nothing is changed; automatic runs pause until the session has grown."""
    error = f"{run.error} Dismissed by {by.actor.name}: {note}".strip()
    return _move(
        run, (Run.Status.PARKED,), by, "run.dismissed", "was dismissed", status=Run.Status.FAILED, error=error
    )


@db_retry.retried
@transaction.atomic
def _move(run: Run, states: Iterable[str], by: By, action: str, words: str, **values: Any) -> Run:
    found = Run.objects.select_for_update(of=("self",)).filter(pk=run.pk).first()
    if found is None or found.status not in states:
        state = found.status if found else pgettext("run status", "gone")
        raise RunNotFitting(str(UNFIT[action]) % {"number": run.pk, "state": state})
    nothing_held = {"stage": "", "lease_owner": "", "lease_expires_at": None}
    for name, value in (nothing_held | values).items():
        setattr(found, name, value)
    try:
        with transaction.atomic():
            found.save()
    except IntegrityError as error:
        raise RunNotFitting(gettext("Another run of this session is queued already.")) from error
    _audit(found, by, action, words)
    return found


def free_stuck_runs(now: datetime) -> list[Run]:
    """Requeue runs whose worker is gone: on this host at once, on others when the lease expires.

    A run that lost many workers is parked: it may be what kills them.
    """
    return [run for run in _stuck() if _free(run, now)]


def _stuck() -> list[Run]:
    running = list(Run.objects.filter(status=Run.Status.RUNNING))
    if not running:
        return []
    late = set(Run.objects.filter(status=Run.Status.RUNNING, lease_expires_at__lt=Now()).values_list("pk", flat=True))
    owners = {run.lease_owner for run in running}
    known = set(Process.objects.filter(name__in=owners).values_list("name", flat=True))
    dead = {name for name in owners if is_alive_here(name) is False} | (expired(owners) & known)
    return [run for run in running if run.pk in late or run.lease_owner in dead]


@db_retry.retried
@transaction.atomic
def _free(run: Run, now: datetime) -> bool:
    held = _mine(run).select_for_update().first()
    if held is None:
        return False
    held.lease_owner, held.lease_expires_at, held.stage = "", None, ""
    held.error_code, held.error = "worker_gone", "The worker ended during the run."
    is_poison = held.fencing_number >= MAX_TAKEOVERS or held.options.get("once")
    held.status, held.not_before = (Run.Status.PARKED if is_poison else Run.Status.QUEUED), now
    try:
        with transaction.atomic():
            held.save()
    except IntegrityError:
        held.status, held.finished_at = Run.Status.FAILED, now
        held.save()
    _audit(held, By(WORKER, now), "run.failed", "lost its worker", error="worker_gone")
    return True


def due_runs(now: datetime, limit: int = 100) -> list[int]:
    """Return the keys of due queued runs whose session has no running run."""
    busy = Run.objects.filter(status=Run.Status.RUNNING, session__isnull=False).values("session")
    waiting = Run.objects.filter(status=Run.Status.QUEUED, not_before__lte=now).exclude(session__in=busy)
    return list(waiting.order_by("id").values_list("pk", flat=True)[:limit])


def is_resting(session: Session, kind: str, *, until: int) -> bool:
    """Tell whether automatic runs of a kind are paused: one is live, held or parked, or a person rejected one.

    After an undo, cancel or dismissal they pause until ``until`` new entries arrive. Runs started by commands don't
    count.
    """
    last = _LATEST.first(session.pk, kind, session.epoch)
    if last is None or last.status == Run.Status.DONE or last.options.get("once"):
        return False
    if last.status not in (Run.Status.UNDONE, Run.Status.CANCELLED, Run.Status.FAILED):
        return True
    new = Entry.objects.in_conversation().filter(session=session, epoch=session.epoch)
    if last.finished_at:
        new = new.filter(recorded_at__gt=last.finished_at)
    return new.count() < max(1, until)


def tokens_spent(workspace: Workspace, now: datetime) -> int:
    """Return the tokens that a workspace's runs used since midnight UTC."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = Run.objects.filter(workspace=workspace).filter(Q(started_at__gte=midnight) | Q(finished_at__gte=midnight))
    spent: int = today.aggregate(n=Coalesce(Sum(F("prompt_tokens") + F("completion_tokens")), 0))["n"]
    return spent


def _audit(run: Run, by: By, action: str, words: str, **detail: Any) -> None:
    """Write the audit record of a step. Edits have their own record, so only their failures are recorded here."""
    if run.kind == Run.Kind.EDIT and action in ("run.started", "run.finished"):
        return
    record(
        by,
        action,
        "run",
        run.pk,
        f"{run.kind.capitalize()} {run.pk} {words}",
        workspace=run.workspace,
        session=run.session,
        detail={"kind": run.kind, "status": run.status} | detail,
    )
