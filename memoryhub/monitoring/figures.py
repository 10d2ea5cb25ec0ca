"""Figures that /metrics reads from the database, the same in every process.

Labels are kinds and states only: no names of workspaces, people or machines.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime

from django.db import DatabaseError, InterfaceError
from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric

from memoryhub.inbox.failures import unfixed_deliveries
from memoryhub.inbox.sources import held_changes, held_rows, stopped_runs
from memoryhub.lib.database.size import database_bytes
from memoryhub.models import Job, Process
from memoryhub.processes import live_processes
from sessions_app.models import DailyTotal, Run, Workspace
from sessions_app.models.runs import LIVE_STATUSES

logger = logging.getLogger(__name__)


class DatabaseFigures:
    """A collector for prometheus-client."""

    def collect(self) -> Iterator[Metric]:
        """Yield all figures. If the database fails, only ``memoryhub_database_up`` is certain."""
        up = GaugeMetricFamily("memoryhub_database_up", "1 if the database answered, otherwise 0.")
        try:
            metrics = list(_figures(timezone.now()))
        except (DatabaseError, InterfaceError) as error:
            logger.warning("can't read the database for /metrics: %s", error)
            metrics = []
        up.add_metric([], 1 if metrics else 0)
        yield from [up, *metrics]


def _figures(now: datetime) -> Iterator[Metric]:
    yield _gauge("memoryhub_database_bytes", "Size of the database.", database_bytes())
    entries = DailyTotal.objects.filter(session=None).aggregate(n=Sum("entry_count"))["n"]
    yield _gauge("memoryhub_entries", "Messages stored.", entries or 0)
    yield _gauge("memoryhub_workspaces", "Workspaces.", Workspace.objects.count())
    yield from _work("job", Job.objects.all(), now)
    yield from _work("run", Run.objects.filter(status__in=LIVE_STATUSES), now)
    yield from _processes()
    yield from _sync(now)
    everywhere = Workspace.objects.all()
    waiting = GaugeMetricFamily("memoryhub_held", "What waits for a person's decision.", labels=["kind"])
    waiting.add_metric(["change"], held_changes(everywhere).count())
    waiting.add_metric(["row"], held_rows(everywhere).count())
    waiting.add_metric(["run"], stopped_runs(everywhere, now).count())
    yield waiting
    failed = unfixed_deliveries(everywhere, now).count()
    yield _gauge("memoryhub_failing_webhooks", "Webhooks whose latest message couldn't be delivered.", failed)


def _work(name: str, rows: QuerySet[Job] | QuerySet[Run], now: datetime) -> Iterator[Metric]:
    count = GaugeMetricFamily(f"memoryhub_{name}s", f"{name.title()}s by kind and state.", labels=["kind", "state"])
    words = "Time that the oldest one has been due or running, in seconds."
    oldest = GaugeMetricFamily(f"memoryhub_oldest_{name}_seconds", words, labels=["kind", "state"])
    since = Min(Coalesce("started_at", "not_before"), filter=Q(status__in=LIVE_STATUSES))
    for row in rows.values("kind", "status").annotate(n=Count("pk"), since=since).order_by("kind", "status"):
        labels = [row["kind"], row["status"]]
        count.add_metric(labels, row["n"])
        if row["since"]:
            oldest.add_metric(labels, max(0.0, (now - row["since"]).total_seconds()))
    yield from (count, oldest)


def _processes() -> Iterator[Metric]:
    """Yield the numbers of live processes, and the age of the newest heartbeat of a worker."""
    live = live_processes()
    count = GaugeMetricFamily("memoryhub_processes", "Processes with a recent heartbeat.", labels=["kind"])
    for kind in Process.Kind.values:
        count.add_metric([kind], sum(process.kind == kind for process in live))
    yield count
    workers = Process.objects.filter(kind=Process.Kind.WORKER)
    age = workers.annotate(age=Now() - F("seen_at")).aggregate(newest=Min("age"))["newest"]
    if age is not None:
        words = "Time since a worker's last heartbeat, in seconds."
        yield _gauge("memoryhub_worker_heartbeat_age_seconds", words, max(0.0, age.total_seconds()))


def _sync(now: datetime) -> Iterator[Metric]:
    found = Workspace.objects.filter(is_followed=True).aggregate(
        followed=Count("pk"),
        failing=Count("pk", filter=Q(sync_state__failed_at__isnull=False) | Q(unavailable_since__isnull=False)),
        checked_at=Min(Coalesce("sync_state__succeeded_at", "updated_at")),
        lag=Max("sync_state__lag_seconds"),
    )
    yield _gauge("memoryhub_followed_folders", "Folders that are synced.", found["followed"])
    yield _gauge("memoryhub_failing_folders", "Synced folders that couldn't be read or synced.", found["failing"])
    unchecked = max(0.0, (now - found["checked_at"]).total_seconds()) if found["checked_at"] else 0
    yield _gauge("memoryhub_sync_age_seconds", "Time since the folder checked longest ago was in sync.", unchecked)
    words = "The longest time from a file's change until it was in the hub, of each folder's last change."
    yield _gauge("memoryhub_sync_lag_seconds", words, found["lag"] or 0)


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, words, value=value)
