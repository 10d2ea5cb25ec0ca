"""The progress of a running job, and the exceptions that end its work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import MemoryHubError
from memoryhub.models import Job

STEP_SECONDS = 1.0  # between two writes of a job's progress
Step = Callable[[int, int, str], None]  # done, total, stage
Write = Callable[[], Any]
RunWrite = Callable[[Write], Any]


class JobCancelled(MemoryHubError):
    """The job was cancelled."""

    code = "job_cancelled"


class JobLost(MemoryHubError):
    """Another worker took over the job, or its row was deleted."""

    code = "job_lost"


class JobStopped(MemoryHubError):
    """The worker is stopping; the job goes back to the queue."""

    code = "job_stopped"


class TryAgain(MemoryHubError):
    """This attempt failed. The job is retried after the next pause of its kind."""

    code = "try_again"


class Postponed(MemoryHubError):
    """The job can't be done before ``until``. This doesn't count as an attempt."""

    code = "postponed"

    def __init__(self, message: str, *, until: datetime) -> None:
        super().__init__(message)
        self.until = until


class Progress:
    """Writes a job's progress to its row while this worker holds it."""

    def __init__(self, job: Job, run_write: RunWrite, is_stopping: Callable[[], bool]) -> None:
        self.job, self.run_write, self.is_stopping = job, run_write, is_stopping
        self.written_at = float("-inf")
        self.result: dict[str, Any] = {}

    def step(self, done: int, total: int, stage: str) -> None:
        """Save the progress, at most once a second. Raises JobCancelled, JobStopped, JobLost."""
        if time.monotonic() - self.written_at >= STEP_SECONDS:
            self.save(steps_done=done, steps_total=total, stage=stage[:200])

    def check(self) -> None:
        """Check whether the job should end, at most once a second. Raises as ``step`` does."""
        if time.monotonic() - self.written_at >= STEP_SECONDS:
            self.save()

    def save(self, **values: Any) -> None:
        """Save fields of the job immediately. Raises as ``step`` does."""
        is_held, is_cancelled = self.run_write(lambda: self._write(values))
        self.written_at = time.monotonic()
        if not is_held:
            raise JobLost("Another worker took over this job.")
        if is_cancelled:
            raise JobCancelled("The job was cancelled.")
        if self.is_stopping():
            raise JobStopped("The worker is stopping.")

    @db_retry.retried
    def _write(self, values: dict[str, Any]) -> tuple[bool, bool]:
        if values:
            held_job(self.job).update(**values)
        row = held_job(self.job).values_list("cancel_asked_at", flat=True)[:1]
        return bool(row), any(row)


@contextmanager
def separate_connection() -> Iterator[RunWrite]:
    """Yield a function that runs a write on another connection and waits for it.

    On SQLite, a connection with an open read transaction can't write after another one has, and doesn't see its
    writes; an export reads in one transaction. Inside an atomic block, as in tests, the same connection is used.
    """
    if connection.in_atomic_block:
        yield lambda write: write()
        return
    with ThreadPoolExecutor(1, thread_name_prefix="progress") as pool:
        try:
            yield lambda write: pool.submit(write).result()
        finally:
            pool.submit(lambda: connection.close()).result()  # the connection of the pool's thread


def held_job(job: Job) -> QuerySet[Job]:
    """Return a queryset with the job's row, empty if the worker that claimed ``job`` doesn't hold it any more."""
    return Job.objects.filter(pk=job.pk, status=Job.Status.RUNNING, fencing_number=job.fencing_number)


def ignore_progress(_done: int, _total: int, _stage: str) -> None:
    """Ignore progress."""
