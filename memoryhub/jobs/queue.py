"""Long work that is no run of one memory: asked for, claimed by a worker, cancelled, taken up again, and over.

The table is the queue. A worker holds a job by the moment at which it started it: whoever lost it to another one
can't write a word more. Every kind may be carried out twice without harm.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext

from memoryhub.jobs.downloads import remove_file
from memoryhub.jobs.heartbeat_files import at_work, clear_away, lives
from memoryhub.jobs.progress import JobCancelled, JobLost, JobStopped, Progress, held_job, writing_aside
from memoryhub.lib import db_retry
from memoryhub.lib.errors import Conflict, MemoryHubError
from memoryhub.models import Job
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import Actor, By, record
from sessions_app.services.runs import RunNotFitting, cancel_run, free_stuck_runs

logger = logging.getLogger(__name__)
LIVE = (Job.Status.QUEUED, Job.Status.RUNNING)
STALE = timedelta(minutes=2)  # without a heartbeat: its worker, on another machine, is gone
HEARTBEAT_SECONDS = 20.0
MAX_TAKEOVERS = 3  # of workers that died in the middle: it may be what kills them
WORKER = Actor("run", "the worker")
_ASKING = 0x6A6F6273  # a lock of PostgreSQL: two who ask at once get one job


Outcome = tuple[dict[str, Any], str]  # the job's result, and the name of the file that it made
Work = Callable[[Job, Progress, Callable[[], datetime]], Outcome]
WORK: dict[str, Work] = {}  # by kind; memoryhub.job_handlers fills it when the hub starts


@db_retry.retried
@transaction.atomic
def request_job(kind: str, workspace: Workspace | None, options: dict[str, Any], *, by: By) -> tuple[Job, bool]:
    """Return the job that does this and whether it is new: one that waits or goes on already is not asked for twice.

    ``workspace`` None: of the whole hub. ``options``: see ``job_work``.
    """
    if connection.vendor == "postgresql":  # SQLite has one writer at a time as it is
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ASKING])
    for job in Job.objects.filter(kind=kind, workspace=workspace, status__in=LIVE, cancel_asked_at=None):
        if _wishes(job) == options:
            return job, False
    job = Job.objects.create(
        kind=kind, workspace=workspace, options=options, requested_by=by.actor.name[:200], created_at=by.at
    )
    _tell(job, by, "requested", "was asked for")
    return job, True


def _wishes(job: Job) -> dict[str, Any]:
    return {name: value for name, value in job.options.items() if name != "taken_up"}


@db_retry.retried
@transaction.atomic
def cancel_job(job: Job, *, by: By) -> Job:
    """Cancel a job: one that waits at once, one that runs as soon as its work looks up. Raises Conflict."""
    locked = Job.objects.select_for_update(of=("self",)).select_related("workspace").filter(pk=job.pk).first()
    if locked is None or locked.status not in LIVE:
        raise Conflict(gettext("It is over already: there is nothing to cancel."), code="job_not_fitting")
    if locked.cancel_asked_at:
        return locked
    locked.cancel_asked_at = by.at
    if locked.status == Job.Status.QUEUED:
        locked.status, locked.finished_at = Job.Status.CANCELLED, by.at
    locked.save(update_fields=["cancel_asked_at", "status", "finished_at"])
    _cancel_run_at_hand(locked, by)
    _tell(locked, by, "cancelled", "was cancelled")
    return locked


def _cancel_run_at_hand(job: Job, by: By) -> None:
    """Let nobody wait for a model whose answer isn't wanted any more."""
    run = Run.objects.filter(pk=job.result.get("run") or 0).first() if job.status == Job.Status.RUNNING else None
    if run is not None and run.is_live:
        with suppress(RunNotFitting):
            cancel_run(run, by=by)


def retry_job(job: Job, *, by: By) -> Job:
    """Ask again for what a job that is over was to do; return the job that does. Raises Conflict."""
    if job.status in LIVE:
        raise Conflict(gettext("It is under way: wait for its end, or cancel it."), code="job_not_fitting")
    return request_job(job.kind, job.workspace, _wishes(job), by=by)[0]


def execute_job(
    pk: int, *, clock: Callable[[], datetime], is_stopping: Callable[[], bool] = lambda: False
) -> Job | None:
    """Claim a queued job and carry it out; return it as it ended, or None where another worker has it.

    ``is_stopping``: asked at each step; a worker that ends gives the job back.
    """
    job = _claim(pk, clock())
    if job is None:
        return None
    with at_work(f"job-{pk}"), _heartbeat(job, clock), writing_aside() as aside:
        _carry_out(job, Progress(job, aside, clock, is_stopping), clock)
    return Job.objects.select_related("workspace").filter(pk=pk).first()


def _carry_out(job: Job, progress: Progress, clock: Callable[[], datetime]) -> None:
    values: dict[str, Any] = {"status": Job.Status.FAILED}
    try:
        result, file_name = WORK[job.kind](job, progress, clock)
        values = {"status": Job.Status.DONE, "result": result, "file_name": file_name, "steps_done": F("steps_total")}
    except JobCancelled:
        values = {"status": Job.Status.CANCELLED}
    except JobStopped:
        progress.aside(lambda: held_job(job).update(status=Job.Status.QUEUED))
        return
    except JobLost:
        logger.info("job %s was taken over", job.pk)
        return
    except MemoryHubError as error:
        values |= {"error_code": error.code, "error": error.message}
    except Exception as error:  # whatever it was must not end the worker
        logger.exception("job %s failed unexpectedly", job.pk)
        words = f"Something unexpected: {type(error).__name__}. The hub's log has it. Try again."
        values |= {"error_code": "unexpected", "error": words}
    progress.aside(lambda: _end_as(job, values, clock()))


@db_retry.retried
def _claim(pk: int, now: datetime) -> Job | None:
    values = {"status": Job.Status.RUNNING, "started_at": now, "heartbeat_at": now, "stage": "", "steps_done": 0}
    if not Job.objects.filter(pk=pk, status=Job.Status.QUEUED).update(**values):
        return None
    return Job.objects.select_related("workspace").filter(pk=pk).first()


@contextmanager
def _heartbeat(job: Job, clock: Callable[[], datetime]) -> Iterator[None]:
    """Say that the job lives while its work is too busy to."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(HEARTBEAT_SECONDS):
            with suppress(DatabaseError):  # a long write holds SQLite: the lock file tells that we live
                held_job(job).update(heartbeat_at=clock())
        connection.close()

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _end_as(job: Job, values: dict[str, Any], now: datetime) -> None:
    """End a job. One that was cancelled after its last step leaves no file: what was forgotten may stand in it."""
    if not values.get("file_name"):
        _end(held_job(job), job, values, now)
        return
    is_ended = _end(held_job(job).filter(cancel_asked_at=None), job, values, now)
    if not is_ended and _end(held_job(job), job, {"status": Job.Status.CANCELLED}, now):
        remove_file(job)


@db_retry.retried
@transaction.atomic
def _end(rows: QuerySet[Job], job: Job, values: dict[str, Any], now: datetime) -> bool:
    if not rows.update(**values, finished_at=now, stage=""):
        return False
    status = values["status"]
    words = {Job.Status.DONE: "is done", Job.Status.FAILED: "failed"}.get(status, "ended where it was")
    verb = "failed" if status == Job.Status.FAILED else "finished"
    _tell(job, By(WORKER, now), verb, words, status=status, error=values.get("error_code", ""))
    return True


def resume_jobs(now: datetime) -> list[Job]:
    """Let jobs whose worker is gone wait for the next one; return them. One that outlived three workers fails."""
    gone = [job for job in Job.objects.filter(status=Job.Status.RUNNING) if _is_interrupted(job, now)]
    if gone:
        free_stuck_runs(now)
    return [job for job in gone if _resume(job, now)]


def _is_interrupted(job: Job, now: datetime) -> bool:
    is_alive = lives(f"job-{job.pk}")
    if is_alive is not None:
        return not is_alive
    return job.heartbeat_at is None or now - job.heartbeat_at > STALE


@db_retry.retried
@transaction.atomic
def _resume(job: Job, now: datetime) -> bool:
    times = job.options.get("taken_up", 0) + 1
    values: dict[str, Any] = {"status": Job.Status.QUEUED, "options": job.options | {"taken_up": times}}
    if job.cancel_asked_at:
        values |= {"status": Job.Status.CANCELLED, "finished_at": now}
    elif times > MAX_TAKEOVERS:
        words = f"Its worker ended in the middle of it {times} times. The hub's log may say why; then try again."
        error = MemoryHubError(words, code="interrupted")
        values |= {"status": Job.Status.FAILED, "finished_at": now, "error": error.message, "error_code": error.code}
    if not held_job(job).filter(heartbeat_at=job.heartbeat_at).update(**values):
        return False
    clear_away(f"job-{job.pk}")
    _tell(job, By(WORKER, now), "interrupted", "lost its worker", status=values["status"])
    return True


def do_next_job(*, clock: Callable[[], datetime], is_stopping: Callable[[], bool] = lambda: False) -> bool:
    """Carry out the job that waits the longest; tell whether there was one."""
    pk = Job.objects.filter(status=Job.Status.QUEUED).order_by("id").values_list("pk", flat=True).first()
    return pk is not None and execute_job(pk, clock=clock, is_stopping=is_stopping) is not None


def forget_old_jobs(now: datetime, *, kept: timedelta) -> None:
    """Remove the rows of jobs that are long over; the audit records stay."""
    Job.objects.filter(~Q(status__in=LIVE), finished_at__lt=now - kept).delete()


def job_words(job: Job) -> str:
    """Return what a job is, as audit records and commands name it."""
    return {"export": "Export", "compression": "Compression of sessions", "rebuild": "Rebuild of search"}[job.kind]


def _tell(job: Job, by: By, verb: str, words: str, **detail: Any) -> None:
    text = f"{job_words(job)} {job.pk} {words}"
    detail = {"kind": job.kind, **detail}
    record(by, f"job.{verb}", "job", job.pk, text, workspace=job.workspace, detail=detail)
