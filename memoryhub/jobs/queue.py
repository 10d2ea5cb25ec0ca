"""The job queue, for all background work except runs. The table ``Job`` is the queue.

A worker holds a job by its fencing number, so a worker that lost a job can't write to it. Job handlers are
idempotent.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext

from memoryhub.jobs.downloads import remove_file
from memoryhub.jobs.kinds import Clock, kinds
from memoryhub.jobs.progress import (
    JobCancelled,
    JobLost,
    JobStopped,
    Postponed,
    Progress,
    TryAgain,
    held_job,
    separate_connection,
)
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Conflict, MemoryHubError, unexpected
from memoryhub.lib.traces import count_queries, traced
from memoryhub.models import Job
from memoryhub.processes import expired, holding, is_held_here, renew_lease, this_home, this_process
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import Actor, By, record
from sessions_app.services.runs import RunNotFitting, cancel_run, free_stuck_runs

logger = logging.getLogger(__name__)
LIVE = (Job.Status.QUEUED, Job.Status.RUNNING)
WORKER = Actor("run", "the worker")
LONGEST_PAUSE = timedelta(days=2)  # of queued jobs and runs
KEPT = timedelta(days=14)
KEPT_UNLISTED = timedelta(days=1)  # of unlisted kinds
NO_FAILURES = (JobCancelled, JobLost, JobStopped, Postponed)
ONCE = "once"  # the option of a job that a command runs itself; no worker resumes it


def request_job(
    kind: str,
    workspace: Workspace | None,
    options: dict[str, Any],
    *,
    by: By,
    key: str = "",
    home: str = "",
) -> tuple[Job, bool]:
    """Return a job and whether it is new: an identical job that is queued or running is returned instead.

    ``workspace``: None for the whole hub. ``options``: see ``memoryhub.job_handlers``. ``key``: identifies identical
    requests; by default kind, workspace and options.
    """
    key = key or _key(kind, workspace, options)
    values = {"kind": kind, "workspace": workspace, "options": options, "unique_key": key, "home": home}
    return _request(values, by)


def _key(kind: str, workspace: Workspace | None, options: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()
    return f"{kind}:{workspace.pk if workspace else ''}:{digest[:32]}"


@db_retry.retried
@transaction.atomic
def _request(values: dict[str, Any], by: By) -> tuple[Job, bool]:
    same = Job.objects.filter(unique_key=values["unique_key"], status__in=LIVE, cancel_asked_at=None)
    job = same.select_related("workspace").first()
    if job is not None:
        return job, False
    try:
        with transaction.atomic():
            job = Job.objects.create(**values, requested_by=by.actor.name[:200], created_at=by.at, not_before=by.at)
    except IntegrityError:  # of a concurrent request
        return same.select_related("workspace").get(), False
    _audit(job, by, "requested", "was requested")
    return job, True


@db_retry.retried
@transaction.atomic
def cancel_job(job: Job, *, by: By) -> Job:
    """Cancel a job: a queued one at once, a running one at its next step. Raises Conflict."""
    locked = Job.objects.select_for_update(of=("self",)).select_related("workspace").filter(pk=job.pk).first()
    if locked is None or not locked.is_live or (locked.status == Job.Status.RUNNING and not _is_cancellable(locked)):
        raise Conflict(gettext("This job has already finished or can't be cancelled."), code="job_not_fitting")
    if locked.cancel_asked_at:
        return locked
    locked.cancel_asked_at = by.at
    locked.save(update_fields=["cancel_asked_at"])
    if locked.status == Job.Status.QUEUED:
        _finish(Job.objects.filter(pk=job.pk), locked, {"status": Job.Status.CANCELLED}, by.at)
    _cancel_current_run(locked, by)
    _audit(locked, by, "cancelled", "was cancelled")
    return locked


def _is_cancellable(job: Job) -> bool:
    return kinds()[job.kind].is_cancellable(job)


def _cancel_current_run(job: Job, by: By) -> None:
    """Cancel the run that the job waits for."""
    run = Run.objects.filter(pk=job.result.get("run") or 0).first() if job.status == Job.Status.RUNNING else None
    if run is not None and run.is_live:
        with suppress(RunNotFitting):
            cancel_run(run, by=by)


def retry_job(job: Job, *, by: By) -> Job:
    """Return a new job like a finished one. Raises Conflict."""
    if job.status in LIVE:
        raise Conflict(gettext("This job is still running. Cancel it first."), code="job_not_fitting")
    options = {name: value for name, value in job.options.items() if name != ONCE}
    return request_job(job.kind, job.workspace, options, by=by, key=job.unique_key, home=job.home)[0]


def waiting_jobs(now: datetime, kinds: Collection[str] = ()) -> QuerySet[Job]:
    """Return the queued jobs that this process may claim, oldest first."""
    same = Job.objects.filter(status=Job.Status.RUNNING, unique_key=OuterRef("unique_key")).exclude(unique_key="")
    rows = Job.objects.filter(status=Job.Status.QUEUED, not_before__lte=now, home__in=("", this_home()))
    rows = rows.filter(kind__in=kinds) if kinds else rows
    return rows.exclude(Exists(same)).order_by("not_before", "id")


def do_next_job(
    *, clock: Clock, is_stopping: Callable[[], bool] = lambda: False, kinds: Collection[str] = ()
) -> bool:
    """Run the oldest queued job of these kinds; return whether there was one."""
    rows = waiting_jobs(clock(), kinds)
    if not rows.exists():
        return False
    job = _claim(rows, clock())
    if job is not None:
        _execute(job, clock, is_stopping)
    return job is not None


@db_retry.retried
@transaction.atomic
def _claim(rows: QuerySet[Job], now: datetime) -> Job | None:
    job = rows.select_related("workspace").select_for_update(of=("self",), skip_locked=True).first()
    if job is None:
        return None
    job.status, job.lease_owner, job.fencing_number = Job.Status.RUNNING, this_process(), job.fencing_number + 1
    job.started_at, job.stage, job.steps_done = now, "", 0
    job.save(update_fields=["status", "lease_owner", "fencing_number", "started_at", "stage", "steps_done"])
    renew_lease()
    return job


def _execute(job: Job, clock: Clock, is_stopping: Callable[[], bool]) -> None:
    try:
        with _holding(job, clock, is_stopping) as progress:
            progress.result = kinds()[job.kind].carry_out(job, progress, clock)
    except DatabaseError as error:
        logger.warning("the database failed during job %s, which is resumed later: %s", job.pk, error)
    except Exception:  # noqa: BLE001, S110  recorded in the job; it must not end the worker
        pass


@contextmanager
def local_job(
    kind: str, workspace: Workspace | None, options: dict[str, Any], *, actor: Actor, clock: Clock
) -> Iterator[Progress]:
    """Record the work in the block as a job of this process. If the process dies, the job fails."""

    @db_retry.retried
    @transaction.atomic
    def create() -> Job:
        job = Job.objects.create(
            kind=kind, workspace=workspace, options=options | {ONCE: True}, requested_by=actor.name[:200],
            created_at=clock(), not_before=clock(), started_at=clock(), status=Job.Status.RUNNING,
            lease_owner=this_process(), fencing_number=1,
        )  # fmt: skip
        renew_lease()
        return job

    with _holding(create(), clock, lambda: False) as progress:
        yield progress


@contextmanager
def _holding(job: Job, clock: Clock, is_stopping: Callable[[], bool]) -> Iterator[Progress]:
    """Hold a claimed job during the block, and record its outcome."""
    with (
        traced(f"job {job.kind}", {"memoryhub.job.id": job.pk}, expected=NO_FAILURES) as span,
        count_queries(span),
        holding(_lease_name(job.pk)),
        separate_connection() as run_write,
    ):
        progress = Progress(job, run_write, is_stopping)
        try:
            yield progress
        except (OperationalError, InterfaceError):
            raise  # the job is resumed when the database is back
        except JobLost:
            logger.info("another worker took over job %s", job.pk)
            raise
        except BaseException as error:
            values = _outcome(job, error, clock())
            run_write(lambda: _end(job, values, clock()))
            span.attributes["memoryhub.job.status"] = values["status"]
            raise
        done = {"status": Job.Status.DONE, "result": progress.result, "file_name": job.file_name, "error": ""}
        run_write(lambda: _end(job, done | {"error_code": "", "steps_done": F("steps_total")}, clock()))
        span.attributes["memoryhub.job.status"] = Job.Status.DONE


def _lease_name(pk: int) -> str:
    return f"job-{pk}"


def _outcome(job: Job, error: BaseException, now: datetime) -> dict[str, Any]:
    """Return the new values of a job whose handler raised an error."""
    if isinstance(error, JobStopped):
        return {"status": Job.Status.QUEUED}
    if isinstance(error, Postponed):
        return {"status": Job.Status.QUEUED, "not_before": error.until}
    if isinstance(error, JobCancelled) or not isinstance(error, Exception):
        return {"status": Job.Status.CANCELLED}
    if isinstance(error, TryAgain):
        values = {"attempt_count": job.attempt_count + 1, "error": error.message, "error_code": error.code}
        pauses = kinds()[job.kind].pauses
        if job.attempt_count < len(pauses):
            return values | {"status": Job.Status.QUEUED, "not_before": now + pauses[job.attempt_count]}
        return values | {"status": Job.Status.FAILED}
    if isinstance(error, MemoryHubError):
        logger.warning("%s %s failed: %s", kinds()[job.kind].label, number_of(job), error.message)
        return {"status": Job.Status.FAILED, "error_code": error.code, "error": error.message}
    logger.error("job %s failed unexpectedly", job.pk, exc_info=error)
    told = unexpected(error)
    return {"status": Job.Status.FAILED, "error_code": told.code, "error": told.message}


def _end(job: Job, values: dict[str, Any], now: datetime) -> None:
    """End a job, or queue it again. A job cancelled after its last step leaves no file."""
    rows = held_job(job)
    every = kinds()[job.kind].every
    if values["status"] == Job.Status.QUEUED:
        _update(rows, **values, lease_owner="", stage="")
    elif every is not None and values["status"] != Job.Status.CANCELLED:
        again = {"status": Job.Status.QUEUED, "not_before": now + every, "lease_owner": "", "finished_at": now}
        _update(rows, **again, error=values["error"], takeover_count=0)
    elif values.get("file_name"):  # it may contain text forgotten in the meantime
        is_done = _end_as(rows.filter(cancel_asked_at=None), job, values, now)
        if not is_done and _end_as(rows, job, {"status": Job.Status.CANCELLED}, now):
            remove_file(job)
    else:
        _end_as(rows, job, values, now)


@db_retry.retried
def _update(rows: QuerySet[Job], **values: Any) -> int:
    return rows.update(**values)


@db_retry.retried
@transaction.atomic
def _end_as(rows: QuerySet[Job], job: Job, values: dict[str, Any], now: datetime) -> bool:
    if not _finish(rows, job, values, now):
        return False
    status = values["status"]
    words = {Job.Status.DONE: "finished", Job.Status.FAILED: "failed"}.get(status, "was cancelled")
    verb = "failed" if status == Job.Status.FAILED else "finished"
    _audit(job, By(WORKER, now), verb, words, status=status, error=values.get("error_code", ""))
    return True


def _finish(rows: QuerySet[Job], job: Job, values: dict[str, Any], now: datetime) -> bool:
    """Save the end of a job and call its kind's ``on_end``, in the caller's transaction."""
    if not rows.update(**values, finished_at=now, stage="", lease_owner=""):
        return False
    job.refresh_from_db()
    kinds()[job.kind].on_end(job, now)
    return True


def resume_jobs(now: datetime) -> list[Job]:
    """Queue jobs whose worker is gone; return them. A job that lost too many workers fails."""
    running = list(Job.objects.filter(status=Job.Status.RUNNING).select_related("workspace"))
    gone = expired({job.lease_owner for job in running}) if running else set()
    lost = [job for job in running if job.lease_owner in gone or _is_dropped(job)]
    if lost:
        free_stuck_runs(now)
    return [job for job in lost if _resume(job, now)]


def correct_due_times(now: datetime) -> None:
    """Make jobs and runs due that were queued by a wrong clock, for later than any pause lasts."""
    late = Q(not_before__gt=now + LONGEST_PAUSE)
    queued_by_schedule = ((name, kind.every) for name, kind in kinds().items() if kind.every)
    for name, every in queued_by_schedule:
        late |= Q(kind=name, not_before__gt=now + every)
    Job.objects.filter(late, status=Job.Status.QUEUED).update(not_before=now)
    Run.objects.filter(status=Run.Status.QUEUED, not_before__gt=now + LONGEST_PAUSE).update(not_before=now)


def _is_dropped(job: Job) -> bool:
    """Return whether this process claimed a job but doesn't run it, because the database failed when it ended."""
    return job.lease_owner == this_process() and not is_held_here(_lease_name(job.pk))


@db_retry.retried
@transaction.atomic
def _resume(job: Job, now: datetime) -> bool:
    times = job.takeover_count + 1
    rows = held_job(job)
    if job.cancel_asked_at:
        is_ours = _finish(rows, job, {"status": Job.Status.CANCELLED}, now)
    elif job.options.get(ONCE) or times > kinds()[job.kind].max_takeovers:
        words = f"The worker ended {times} times while running this job. See the hub's log."
        failed = {"status": Job.Status.FAILED, "error": words, "error_code": "interrupted"}
        is_ours = _finish(rows, job, failed, now)
    else:
        is_ours = bool(rows.update(status=Job.Status.QUEUED, lease_owner="", takeover_count=times))
        job.takeover_count = times
    if is_ours:
        logger.warning("job %s lost its worker", job.pk)
        _audit(job, By(WORKER, now), "interrupted", "lost its worker", status=job.status)
    return is_ours


def forget_old_jobs(now: datetime) -> None:
    """Delete the rows of jobs that ended long ago. Audit records are kept."""
    over = Job.objects.exclude(status__in=LIVE)
    over.filter(finished_at__lt=now - KEPT).delete()
    unlisted = [name for name, kind in kinds().items() if not kind.is_listed]
    over.filter(kind__in=unlisted, status=Job.Status.DONE, finished_at__lt=now - KEPT_UNLISTED).delete()


def number_of(job: Job) -> int:
    """Return the number that pages show: for an import, that of its report."""
    return int(job.options.get("report", job.pk))


def _audit(job: Job, by: By, verb: str, words: str, **detail: Any) -> None:
    kind, number = kinds()[job.kind], number_of(job)
    if verb in kind.audited:
        detail = {"kind": job.kind, **detail}
        text = f"{kind.label} {number} {words}"
        record(by, f"{kind.noun}.{verb}", kind.noun, number, text, workspace=job.workspace, detail=detail)
