"""The queue as a list, with the runs beside it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext

from memoryhub.jobs.kinds import KINDS, listed_kinds
from memoryhub.jobs.queue import number_of
from memoryhub.models import Job, Process
from memoryhub.processes import expired, live_processes
from sessions_app.models import Run, Workspace
from sessions_app.models.runs import LIVE_STATUSES

LATELY = timedelta(days=1)
MOST_SHOWN = 100  # of each table
TRUSTED_SHARE = 0.05  # of the work has to be done before it tells how long the rest takes
TRUSTED_SECONDS = 3.0
PATIENCE = timedelta(seconds=10)  # before waiting work says that no worker runs
UNITS = {"export": "rows", "compression": "sessions", "rebuild": "rows", "import": "files"}
EVEN_KINDS = ("export", "import")  # whose steps take about as long each


@dataclass(frozen=True)
class WorkItem:
    """A job or a run in the list. ``table``: job, import or run; ``number``: as people know it.

    ``unit``: of what ``done`` and ``total`` count; "" where only its stage is known. ``seconds_left`` only where what
    is done tells. ``is_interrupted``: its worker is gone. ``is_stranded``: it waits, and no worker runs that could
    take it.
    """

    table: str
    number: int
    row: Any
    done: int = 0
    total: int = 0
    unit: str = ""
    stage: str = ""
    seconds_left: int | None = None
    is_cancelling: bool = False
    is_interrupted: bool = False
    is_stranded: bool = False

    kind = property(lambda self: self.row.kind)
    workspace = property(lambda self: self.row.workspace)
    status = property(lambda self: self.row.status)
    requested_by = property(lambda self: self.row.requested_by)
    created_at = property(lambda self: self.row.created_at)
    started_at = property(lambda self: self.row.started_at)
    finished_at = property(lambda self: self.row.finished_at)
    error = property(lambda self: self.row.error)

    @property
    def name(self) -> str:
        return f"{self.table}-{self.number}"

    @property
    def is_live(self) -> bool:
        return self.status in LIVE_STATUSES

    @property
    def order(self) -> tuple[bool, float]:
        moment = self.finished_at or self.created_at
        return self.is_live, moment.timestamp()


def list_work(
    workspaces: QuerySet[Workspace], *, of_hub: bool, now: datetime, with_runs: bool = True
) -> list[WorkItem]:
    """Return what is under way, waits, or ended within a day: first what is under way, then the latest.

    ``of_hub``: with what is of no workspace. ``with_runs``: runs of the workspaces too; of those that are over only
    the long ones, which are about no single session, and no edits.
    """
    jobs = list(_jobs(workspaces, of_hub=of_hub).filter(_lately(now)).order_by("-id")[:MOST_SHOWN])
    at_hand = {job.result.get("run") for job in jobs if job.is_live}  # a job shows its run itself
    runs = [run for run in _runs(workspaces, now) if run.pk not in at_hand] if with_runs else []
    workers = live_workers()
    gone = expired({job.lease_owner for job in jobs if job.status == Job.Status.RUNNING})
    items = [_job_item(job, now, workers, gone) for job in jobs] + [_run_item(run, now, workers) for run in runs]
    return sorted(items, key=lambda item: item.order, reverse=True)


def live_count(workspaces: QuerySet[Workspace], *, of_hub: bool) -> int:
    """Count what is under way or waits, in one query."""
    jobs = _jobs(workspaces, of_hub=of_hub).filter(status__in=LIVE_STATUSES).order_by().values("pk")
    mine = Q(workspace__in=workspaces.order_by().values("pk"))
    runs = Run.objects.filter(mine, status__in=LIVE_STATUSES).order_by().values("pk")
    return int(jobs.union(runs, all=True).count())


def job_item(job: Job, now: datetime) -> WorkItem:
    """Return a job as the list shows it."""
    is_running = job.status == Job.Status.RUNNING
    return _job_item(job, now, live_workers(), expired({job.lease_owner}) if is_running else ())


def run_item(run: Run, now: datetime) -> WorkItem:
    """Return a run as the list shows it."""
    return _run_item(run, now, live_workers())


def live_workers() -> list[Process]:
    """Return the workers that are alive, on any machine."""
    return live_processes(Process.Kind.WORKER)


def _jobs(workspaces: QuerySet[Workspace], *, of_hub: bool) -> QuerySet[Job]:
    mine = Q(workspace__in=workspaces.order_by().values("pk")) | (Q(workspace=None) if of_hub else Q(pk__in=[]))
    return Job.objects.filter(mine, kind__in=listed_kinds()).select_related("workspace")


def _runs(workspaces: QuerySet[Workspace], now: datetime) -> QuerySet[Run]:
    rows = Run.objects.filter(_lately(now), workspace__in=workspaces)
    is_long = Q(session=None) & ~Q(kind=Run.Kind.EDIT)
    rows = rows.filter(Q(status__in=LIVE_STATUSES) | is_long, origin=Run.Origin.HUB)
    return rows.select_related("workspace", "session").order_by("-id")[:MOST_SHOWN]


def _lately(now: datetime) -> Q:
    return Q(status__in=LIVE_STATUSES) | Q(finished_at__gte=now - LATELY)


def _job_item(job: Job, now: datetime, workers: list[Process], gone: Collection[str]) -> WorkItem:
    is_running = job.status == Job.Status.RUNNING
    is_interrupted = is_running and job.lease_owner in gone
    is_waiting = is_interrupted or job.status == Job.Status.QUEUED
    may_run = [worker for worker in workers if job.home in ("", worker.home)]
    return WorkItem(
        table="import" if "report" in job.options else "job",
        number=number_of(job),
        row=job,
        done=job.steps_done,
        total=job.steps_total,
        unit=UNITS.get(job.kind, ""),
        stage=job.stage,
        seconds_left=_seconds_left(job, now) if is_running and not is_interrupted else None,
        is_cancelling=job.cancel_asked_at is not None and is_running and KINDS[job.kind].is_cancellable(job),
        is_interrupted=is_interrupted,
        is_stranded=is_waiting and not may_run and now - job.created_at > PATIENCE,
    )


def _run_item(run: Run, now: datetime, workers: list[Process]) -> WorkItem:
    is_by_row = run.kind in (Run.Kind.SCAN, Run.Kind.EMBEDDING, Run.Kind.EDIT)
    is_late = now - max(run.created_at, run.not_before) > PATIENCE
    return WorkItem(
        table="run",
        number=run.pk,
        row=run,
        done=run.steps_done,
        total=run.steps_total if run.steps_total > 1 else 0,
        unit="rows" if is_by_row else "parts",
        stage=gettext(run.stage) if run.stage else "",
        is_stranded=run.status == Run.Status.QUEUED and is_late and not workers,
    )


def _seconds_left(job: Job, now: datetime) -> int | None:
    """Return how long the rest takes if it goes on as it did; None where too little is done to tell."""
    done, total = job.steps_done, job.steps_total
    if job.started_at is None or job.kind not in EVEN_KINDS or not 0 < done < total or done < total * TRUSTED_SHARE:
        return None
    elapsed = (now - job.started_at).total_seconds()
    return round(elapsed * (total - done) / done) if elapsed >= TRUSTED_SECONDS else None
