"""The worker's two loops: one for runs, one for jobs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from threading import Event

from django.db import OperationalError, close_old_connections, connection
from django.utils import timezone

from memoryhub.backups.folder import request_due_backup
from memoryhub.integrity.file_check import check_file
from memoryhub.jobs.downloads import remove_old_downloads
from memoryhub.jobs.kinds import lanes
from memoryhub.jobs.queue import WORKER, correct_due_times, do_next_job, request_job, resume_jobs, waiting_jobs
from memoryhub.models import Job
from memoryhub.runs.executing import execute
from sessions_app.services.audit import By
from sessions_app.services.runs import due_runs, free_stuck_runs

logger = logging.getLogger(__name__)
IDLE_SECONDS = 0.5
RESUME_SECONDS = 2.0  # between searches for runs and jobs of dead processes
HOUSEKEEPING_SECONDS = 60.0  # between checks of schedules and old files
FILE_CHECK_SECONDS = 86_400.0
FILE_CHECK_LIMIT = 120.0  # seconds
RECURRING = (Job.Kind.SWEEP, Job.Kind.PRUNING)


def carry_out_runs(stopping: Event) -> None:
    """Execute runs one after another until ``stopping`` is set. Errors are logged, and the loop continues."""
    resume = Every(RESUME_SECONDS, lambda: _free_runs(timezone.now()))

    def turn() -> bool:
        resume()
        return do_next_run(timezone.now)

    _loop(turn, stopping)


def carry_out_jobs(stopping: Event) -> None:
    """Execute jobs until ``stopping`` is set, with one thread for each lane."""
    woken = Event()
    busy: dict[str, Future[None]] = {}
    resume = Every(RESUME_SECONDS, lambda: resume_jobs(timezone.now()))
    housekeeping = Every(HOUSEKEEPING_SECONDS, lambda: do_housekeeping(timezone.now()))
    file_check = Every(FILE_CHECK_SECONDS, log_damage)

    def turn() -> bool:
        resume()
        housekeeping()
        file_check()
        idle = {lane: kinds for lane, kinds in lanes().items() if lane not in busy or busy[lane].done()}
        kinds = [kind for of_lane in idle.values() for kind in of_lane]
        due = set(waiting_jobs(timezone.now(), kinds).order_by().values_list("kind", flat=True).distinct())
        for lane, of_lane in idle.items():
            if due.intersection(of_lane):
                busy[lane] = pool.submit(_do_jobs, of_lane, stopping, woken)
        return False

    with ThreadPoolExecutor(len(lanes()), thread_name_prefix="jobs") as pool:
        _loop(turn, stopping, woken)


def _do_jobs(kinds: list[str], stopping: Event, woken: Event) -> None:
    """Execute the queued jobs of a lane."""
    try:
        close_old_connections()
        while not stopping.is_set() and do_next_job(clock=timezone.now, is_stopping=stopping.is_set, kinds=kinds):
            close_old_connections()
    except OperationalError as error:
        logger.warning("the database isn't available: %s", error)
    except Exception:
        logger.exception("executing jobs failed")
    finally:
        connection.close()
        woken.set()


def _loop(turn: Callable[[], bool], stopping: Event, woken: Event | None = None) -> None:
    """Call ``turn`` until ``stopping`` is set, with a pause after it returns False."""
    while not stopping.is_set():
        close_old_connections()
        was_busy = False
        try:
            was_busy = turn()
        except OperationalError as error:
            logger.warning("the database isn't available: %s", error)
        except Exception:
            logger.exception("the worker's loop failed")
        if not was_busy:
            (woken or stopping).wait(IDLE_SECONDS)
        if woken:
            woken.clear()
    connection.close()


class Every:
    """Calls a function at most once every ``seconds``."""

    def __init__(self, seconds: float, call: Callable[[], object]) -> None:
        self.seconds, self.call, self.called_at = seconds, call, float("-inf")

    def __call__(self) -> None:
        if time.monotonic() - self.called_at >= self.seconds:
            self.call()
            self.called_at = time.monotonic()


def do_next_run(now: Callable[[], datetime]) -> bool:
    """Execute the next due run; return whether there was one."""
    return any(execute(pk, now=now) is not None for pk in due_runs(now(), limit=10))


def _free_runs(now: datetime) -> None:
    for run in free_stuck_runs(now):
        logger.warning("run %s lost its worker and is queued again", run.pk)


def log_damage() -> None:
    """Check the database file, and log what is damaged."""
    if damage := check_file(FILE_CHECK_LIMIT):
        logger.error("the database file is damaged; restore a backup (docs/backup.md): %s", damage)


def do_housekeeping(now: datetime) -> None:
    """Queue recurring jobs and due backups, and delete this machine's old downloads."""
    correct_due_times(now)
    for kind in RECURRING:
        request_job(kind, None, {}, by=By(WORKER, now))
    request_due_backup(now)
    remove_old_downloads(now)
