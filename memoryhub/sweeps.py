"""Recurring work: request due runs, and delete old rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, QuerySet

from knowledge_app.services.rows.scratchpads import UPKEEP, end_run, idle_scratchpads
from memoryhub.accounts.attempt_limits import delete_expired_attempts
from memoryhub.accounts.sign_ins import delete_ended
from memoryhub.agents.api_tokens import delete_old_calls
from memoryhub.agents.oauth.clients import delete_unused_clients
from memoryhub.graph import embedding_run
from memoryhub.graph.graph_cache import drop_stale_graphs
from memoryhub.hygiene import scanning
from memoryhub.jobs.queue import forget_old_jobs
from memoryhub.jobs.retention import delete_old_records
from memoryhub.processes import forget_old_processes
from memoryhub.runs import compress, consolidate
from sessions_app.models import Run, Session
from sessions_app.models.runs import UNSETTLED_STATUSES
from sessions_app.services.access_log import forget_old_accesses
from sessions_app.services.audit import By
from sessions_app.services.audit_chain import seal_records

SWEEP_EVERY = timedelta(seconds=15)
PRUNE_EVERY = timedelta(minutes=10)
SWEPT_SESSIONS = 50


def request_due(now: datetime) -> None:
    """Request due runs, and clear idle scratchpads."""
    for session in _sessions_over_limits():
        compress.request_if_due(session, now)
    for session in _sessions_unconsolidated():
        consolidate.request_if_due(session, now)
    scanning.request_due(now)
    for workspace in idle_scratchpads(now):
        end_run(workspace, by=By(UPKEEP, now))
    embedding_run.request_where_due(now)


def prune(now: datetime) -> None:
    """Delete old jobs, records, calls, OAuth clients, sign-ins, processes and graphs, and seal audit records."""
    forget_old_jobs(now)
    forget_old_accesses(now)
    delete_old_records(now)
    delete_old_calls(now)
    delete_unused_clients(now)
    seal_records(now)
    delete_ended(now)
    delete_expired_attempts(now)
    forget_old_processes()
    drop_stale_graphs()


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
    over = Session.objects.over_limits().filter(workspace__auto_compress=True)
    over = over.exclude(pk__in=_unsettled(Run.Kind.COMPRESSION))
    return list(over.select_related("workspace").order_by("-updated_at", "-id")[:SWEPT_SESSIONS])
