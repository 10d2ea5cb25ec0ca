"""The worker's two loops: one for runs, one for jobs. Whatever a stopped hub left undone is found by any worker."""

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
from memoryhub.jobs.downloads import remove_old_downloads
from memoryhub.jobs.kinds import lanes
from memoryhub.jobs.queue import WORKER, do_next_job, request_job, resume_jobs, waiting_jobs
from memoryhub.models import Job
from memoryhub.runs.executing import execute
from sessions_app.services.audit import By
from sessions_app.services.runs import due_runs, free_stuck_runs

logger = logging.getLogger(__name__)
IDLE_SECONDS = 0.5
RESUME_SECONDS = 2.0  # between searches for runs and jobs whose process is gone
HOUSEKEEPING_SECONDS = 60.0  # between looks at this machine's own files
RECURRING = (Job.Kind.SWEEP, Job.Kind.PRUNING)


def carry_out_runs(stopping: Event) -> None:
    """Carry out runs, one after another, until told to stop. No error ends the loop: the next turn tries again."""
    resume = Every(RESUME_SECONDS, lambda: _free_runs(timezone.now()))

    def turn() -> bool:
        resume()
        return do_next_run(timezone.now)

    _loop(turn, stopping)


def carry_out_jobs(stopping: Event) -> None:
    """Carry out jobs until told to stop: those of one lane one after another, those of different lanes at once."""
    woken = Event()
    busy: dict[str, Future[None]] = {}
    resume = Every(RESUME_SECONDS, lambda: resume_jobs(timezone.now()))
    housekeeping = Every(HOUSEKEEPING_SECONDS, lambda: keep_house(timezone.now()))

    def turn() -> bool:
        resume()
        housekeeping()
        idle = {lane: kinds for lane, kinds in lanes().items() if lane not in busy or busy[lane].done()}
        kinds = [kind for of_lane in idle.values() for kind in of_lane]
        due = set(waiting_jobs(timezone.now(), kinds).order_by().values_list("kind", flat=True).distinct())
        for lane, of_lane in idle.items():
            if due.intersection(of_lane):
                busy[lane] = pool.submit(_work_off, of_lane, stopping, woken)
        return False

    with ThreadPoolExecutor(len(lanes()), thread_name_prefix="jobs") as pool:
        _loop(turn, stopping, woken)


def _work_off(kinds: list[str], stopping: Event, woken: Event) -> None:
    """Carry out the jobs of a lane that wait."""
    try:
        close_old_connections()
        while not stopping.is_set() and do_next_job(clock=timezone.now, is_stopping=stopping.is_set, kinds=kinds):
            close_old_connections()
    except OperationalError as error:
        logger.warning("the database can't be used: %s", error)
    except Exception:
        logger.exception("carrying out jobs failed")
    finally:
        connection.close()
        woken.set()


def _loop(turn: Callable[[], bool], stopping: Event, woken: Event | None = None) -> None:
    """Take turns until told to stop, with a pause after one that found nothing to do."""
    while not stopping.is_set():
        close_old_connections()
        did_something = False
        try:
            did_something = turn()
        except OperationalError as error:
            logger.warning("the database can't be used: %s", error)
        except Exception:
            logger.exception("a turn of the worker failed")
        if not did_something:
            (woken or stopping).wait(IDLE_SECONDS)
        if woken:
            woken.clear()
    connection.close()


class Every:
    """Calls something at most once in so many seconds."""

    def __init__(self, seconds: float, call: Callable[[], object]) -> None:
        self.seconds, self.call, self.called_at = seconds, call, float("-inf")

    def __call__(self) -> None:
        if time.monotonic() - self.called_at >= self.seconds:
            self.call()
            self.called_at = time.monotonic()


def do_next_run(now: Callable[[], datetime]) -> bool:
    """Carry out the next run that is due; tell whether there was one."""
    return any(execute(pk, now=now) is not None for pk in due_runs(now(), limit=10))


def _free_runs(now: datetime) -> None:
    for run in free_stuck_runs(now):
        logger.warning("run %s lost its worker; it waits for another one", run.pk)


def keep_house(now: datetime) -> None:
    """Queue recurring jobs that aren't, request the backup that is due, remove this machine's old downloads."""
    for kind in RECURRING:
        request_job(kind, None, {}, by=By(WORKER, now))
    request_due_backup(now)
    remove_old_downloads(now)
