"""The progress of a job, and how its work is told to end: cancelled, taken over, or its worker stops."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from memoryhub.lib import db_retry
from memoryhub.lib.errors import MemoryHubError
from memoryhub.models import Job

STEP_SECONDS = 1.0  # between two writes of a job's progress
Step = Callable[[int, int, str], None]  # done, of how many, and what it is at
Write = Callable[[], Any]
Aside = Callable[[Write], Any]


class JobCancelled(MemoryHubError):
    """Somebody cancelled the job."""

    code = "job_cancelled"


class JobLost(MemoryHubError):
    """Another worker took the job over, or its row is gone."""

    code = "job_lost"


class JobStopped(MemoryHubError):
    """The worker stops; the job waits for the next one."""

    code = "job_stopped"


class TryAgain(MemoryHubError):
    """This attempt failed; the next one is made after the kind's pause, as long as it has one."""

    code = "try_again"


class Postponed(MemoryHubError):
    """The job can't be done yet: it waits until then, and this was no attempt."""

    code = "postponed"

    def __init__(self, message: str, *, until: datetime) -> None:
        super().__init__(message)
        self.until = until


class Progress:
    """The way from a job's work to its row, for as long as this worker holds it."""

    def __init__(self, job: Job, aside: Aside, is_stopping: Callable[[], bool]) -> None:
        self.job, self.aside, self.is_stopping = job, aside, is_stopping
        self.written_at = float("-inf")
        self.result: dict[str, Any] = {}

    def step(self, done: int, total: int, stage: str) -> None:
        """Write how far the work is, at most once a second. Raises JobCancelled, JobStopped, JobLost."""
        if time.monotonic() - self.written_at >= STEP_SECONDS:
            self.keep(steps_done=done, steps_total=total, stage=stage[:200])

    def look(self) -> None:
        """Check whether the work is to end, at most once a second. Raises as ``step`` does."""
        if time.monotonic() - self.written_at >= STEP_SECONDS:
            self.keep()

    def keep(self, **values: Any) -> None:
        """Write some fields of the job at once. Raises as ``step`` does."""
        is_held, is_cancelled = self.aside(lambda: self._write(values))
        self.written_at = time.monotonic()
        if not is_held:
            raise JobLost("Another worker has taken this job over.")
        if is_cancelled:
            raise JobCancelled("It was cancelled.")
        if self.is_stopping():
            raise JobStopped("The worker stops.")

    @db_retry.retried
    def _write(self, values: dict[str, Any]) -> tuple[bool, bool]:
        if values:
            held_job(self.job).update(**values)
        row = held_job(self.job).values_list("cancel_asked_at", flat=True)[:1]
        return bool(row), any(row)


@contextmanager
def writing_aside() -> Iterator[Aside]:
    """Yield what carries out a write on a connection of its own, and waits for it.

    On SQLite a connection that is reading can't write any more once another one has, nor see what that wrote; and
    an export reads for as long as it goes on. Inside a transaction, as in a test, it is the same connection.
    """
    if connection.in_atomic_block:
        yield lambda write: write()
        return
    with ThreadPoolExecutor(1, thread_name_prefix="notes") as pool:
        try:
            yield lambda write: pool.submit(write).result()
        finally:
            pool.submit(lambda: connection.close()).result()  # that of the pool's thread


def held_job(job: Job) -> QuerySet[Job]:
    """Return a job's row where the worker that claimed it as ``job`` still holds it, and none otherwise."""
    return Job.objects.filter(pk=job.pk, status=Job.Status.RUNNING, fencing_number=job.fencing_number)


def nothing_told(_done: int, _total: int, _stage: str) -> None:
    """For work that nobody watches."""
