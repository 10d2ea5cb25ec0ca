"""What a worker looks after, turn by turn: runs that wait, runs whose worker is gone, work that is due, webhooks.

The tables are the queue: whatever a stopped hub left undone is found again by the next turn of any worker.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Event
from typing import Any

from django.conf import settings
from django.db import OperationalError, close_old_connections, connection
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from knowledge_app.services.rows.scratchpads import UPKEEP, end_run, idle_scratchpads
from memoryhub.accounts.sign_ins import forget_ended
from memoryhub.agents.tokens import forget_old_calls
from memoryhub.graph import embedding_run
from memoryhub.hygiene import scanning
from memoryhub.jobs.downloads import remove_old_downloads
from memoryhub.jobs.queue import do_next_job, forget_old_jobs, resume_jobs
from memoryhub.runs import compress, consolidate
from memoryhub.runs.executing import execute
from memoryhub.sync.import_requests import resume_imports
from sessions_app.models import Run, Session
from sessions_app.models.runs import UNSETTLED_STATUSES
from sessions_app.services.access_log import forget_old_accesses
from sessions_app.services.audit import By
from sessions_app.services.runs import due_runs, free_stuck_runs
from sessions_app.services.webhooks import deliver, due_deliveries

logger = logging.getLogger(__name__)
SWEEP_SECONDS = 15.0  # between searches for stuck runs and for sessions over their limits
IDLE_SECONDS = 0.5
SWEPT_SESSIONS = 50
KEPT_JOBS = timedelta(days=14)


def look_after(stopping: Event) -> None:
    """Work until told to stop. No error ends it: what failed is tried again in the next turn."""
    swept_at = float("-inf")
    while not stopping.is_set():
        close_old_connections()
        try:
            if time.monotonic() - swept_at >= SWEEP_SECONDS:
                sweep(timezone.now())
                swept_at = time.monotonic()
            did_something = turn(timezone.now)
        except OperationalError as error:
            logger.warning("the database can't be used: %s", error)
            did_something = False
        except Exception:
            logger.exception("a turn of the worker failed")
            did_something = False
        if not did_something:
            stopping.wait(IDLE_SECONDS)
    connection.close()


def look_after_jobs(stopping: Event) -> None:
    """Carry out jobs, one after another, until told to stop; those whose worker was killed, imports too, come first.

    Beside ``look_after``, so that neither waits for the other.
    """
    swept_at = float("-inf")
    while not stopping.is_set():
        close_old_connections()
        did_something = False
        try:
            if time.monotonic() - swept_at >= SWEEP_SECONDS:
                resume_jobs(timezone.now())
                resume_imports(timezone.now)
                remove_old_downloads(timezone.now())
                swept_at = time.monotonic()
            did_something = do_next_job(clock=timezone.now, is_stopping=stopping.is_set)
        except OperationalError as error:
            logger.warning("the database can't be used: %s", error)
        except Exception:
            logger.exception("looking after jobs failed")
        if not did_something:
            stopping.wait(IDLE_SECONDS)
    connection.close()


def turn(now: Callable[[], datetime]) -> bool:
    """Send what webhooks are due and carry out the next run; tell whether there was anything to do."""
    deliveries = due_deliveries(now())
    for delivery in deliveries:
        deliver(delivery, allowed=settings.MEMORYHUB_PRIVATE_HOSTS, now=now())
    for pk in due_runs(now(), limit=10):
        if execute(pk, now=now) is not None:
            return True
    return bool(deliveries)


def sweep(now: datetime) -> None:
    """Free runs whose worker is gone, ask for what is due, empty idle scratchpads, forget old jobs and readings."""
    for run in free_stuck_runs(now):
        logger.warning("run %s lost its worker; it waits for another one", run.pk)
    for session in _sessions_over_limits():
        compress.request_if_due(session, now)
    for session in _sessions_unconsolidated():
        consolidate.request_if_due(session, now)
    scanning.request_due(now)
    for workspace in idle_scratchpads(now):
        end_run(workspace, by=By(UPKEEP, now))
    embedding_run.request_where_due(now)
    DBTaskResult.objects.finished().filter(finished_at__lt=now - KEPT_JOBS).delete()
    forget_old_jobs(now, kept=KEPT_JOBS)
    forget_old_accesses(now)
    forget_old_calls(now)
    forget_ended(now)


def _sessions_unconsolidated() -> list[Session]:
    waiting = Session.objects.filter(
        archived_at=None,
        workspace__auto_consolidate=True,
        workspace__path="",
        next_position__gte=F("last_consolidated") + F("workspace__memory_window"),
    )
    waiting = waiting.exclude(pk__in=_unsettled(Run.Kind.CONSOLIDATION))
    return list(waiting.select_related("workspace").order_by("-updated_at", "-id")[:SWEPT_SESSIONS])


def _unsettled(kind: str) -> QuerySet[Run, Any]:
    return Run.objects.filter(kind=kind, status__in=UNSETTLED_STATUSES, session__isnull=False).values("session")


def _sessions_over_limits() -> list[Session]:
    over_tokens = Q(workspace__max_tokens__lt=F("active_tokens") + F("summary_tokens"))
    over_entries = Q(workspace__max_entries__lt=F("active_entry_count"))
    over = Session.objects.filter(over_tokens | over_entries, archived_at=None, workspace__auto_compress=True)
    over = over.exclude(pk__in=_unsettled(Run.Kind.COMPRESSION))
    return list(over.select_related("workspace").order_by("-updated_at", "-id")[:SWEPT_SESSIONS])
