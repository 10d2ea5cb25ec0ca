"""Jobs and runs in one list."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils.translation import gettext

from memoryhub.jobs.kinds import kinds, listed_kinds
from memoryhub.jobs.queue import number_of
from memoryhub.lib.database.fixed_sql import keys_sql
from memoryhub.models import Job, Process
from memoryhub.processes import expired, live_processes
from sessions_app.models import Run, Workspace
from sessions_app.models.runs import LIVE_STATUSES

RECENT = timedelta(days=1)
MAX_ROWS = 100  # of each table
MIN_SHARE = 0.05  # must be done before the time left is estimated
MIN_SECONDS = 3.0
STRANDED_AFTER = timedelta(seconds=10)  # before a queued job counts as stranded
UNITS = {"export": "rows", "compression": "sessions", "rebuild": "rows", "import": "files", "erasure": "workspaces"}
ESTIMATED_KINDS = ("export", "import")  # whose steps take about equally long


@dataclass(frozen=True)
class WorkItem:
    """A job or run. ``table``: job, import or run; ``number``: see ``number_of``.

    ``unit``: of ``done`` and ``total``; "" if only the stage is known. ``seconds_left``: None if there is no
    estimate. ``is_interrupted``: its worker is gone. ``is_stranded``: it is queued, and no worker is running for it.
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
    """Return live jobs and those that ended within a day: live ones first, then the latest.

    ``of_hub``: include jobs without a workspace. ``with_runs``: include runs; of finished ones only those that aren't
    edits or runs of a single session.
    """
    jobs = list(_jobs(workspaces, of_hub=of_hub).filter(_recent(now)).order_by("-id")[:MAX_ROWS])
    current = {job.result.get("run") for job in jobs if job.is_live}  # a job shows its current run itself
    runs = [run for run in _runs(workspaces, now) if run.pk not in current] if with_runs else []
    workers = live_workers()
    gone = expired({job.lease_owner for job in jobs if job.status == Job.Status.RUNNING})
    items = [_job_item(job, now, workers, gone) for job in jobs] + [_run_item(run, now, workers) for run in runs]
    return sorted(items, key=lambda item: item.order, reverse=True)


def live_count(workspaces: QuerySet[Workspace], *, of_hub: bool) -> int:
    """Return the number of live jobs and runs, in one query.

    Written in SQL, because every page runs it and Django takes longer to build it than to run it.
    """
    shown, params = keys_sql(workspaces)
    live, kinds_of_jobs = (", ".join(f"'{name}'" for name in names) for names in (LIVE_STATUSES, listed_kinds()))
    mine = "workspace_id IN (SELECT id FROM shown)"
    jobs = f"SELECT count(*) FROM {Job._meta.db_table} WHERE status IN ({live}) AND kind IN ({kinds_of_jobs})"  # noqa: S608
    jobs += f" AND ({mine} OR workspace_id IS NULL)" if of_hub else f" AND {mine}"
    runs = f"SELECT count(*) FROM {Run._meta.db_table} WHERE status IN ({live}) AND {mine}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(f"WITH shown(id) AS ({shown}) SELECT ({jobs}) + ({runs})", params)
        return int(cursor.fetchone()[0])


def job_item(job: Job, now: datetime) -> WorkItem:
    """Return a job as a list item."""
    is_running = job.status == Job.Status.RUNNING
    return _job_item(job, now, live_workers(), expired({job.lease_owner}) if is_running else ())


def run_item(run: Run, now: datetime) -> WorkItem:
    """Return a run as a list item."""
    return _run_item(run, now, live_workers())


def live_workers() -> list[Process]:
    """Return the live workers on all machines."""
    return live_processes(Process.Kind.WORKER)


def _jobs(workspaces: QuerySet[Workspace], *, of_hub: bool) -> QuerySet[Job]:
    mine = Q(workspace__in=workspaces.order_by().values("pk")) | (Q(workspace=None) if of_hub else Q(pk__in=[]))
    return Job.objects.filter(mine, kind__in=listed_kinds()).select_related("workspace")


def _runs(workspaces: QuerySet[Workspace], now: datetime) -> QuerySet[Run]:
    rows = Run.objects.filter(_recent(now), workspace__in=workspaces)
    is_long = Q(session=None) & ~Q(kind=Run.Kind.EDIT)
    rows = rows.filter(Q(status__in=LIVE_STATUSES) | is_long, origin=Run.Origin.HUB)
    return rows.select_related("workspace", "session").order_by("-id")[:MAX_ROWS]


def _recent(now: datetime) -> Q:
    return Q(status__in=LIVE_STATUSES) | Q(finished_at__gte=now - RECENT)


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
        is_cancelling=job.cancel_asked_at is not None and is_running and kinds()[job.kind].is_cancellable(job),
        is_interrupted=is_interrupted,
        is_stranded=is_waiting and not may_run and now - job.created_at > STRANDED_AFTER,
    )


def _run_item(run: Run, now: datetime, workers: list[Process]) -> WorkItem:
    is_by_row = run.kind in (Run.Kind.SCAN, Run.Kind.EMBEDDING, Run.Kind.EDIT)
    is_late = now - max(run.created_at, run.not_before) > STRANDED_AFTER
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
    """Return an estimate from the job's speed so far; None if too little is done."""
    done, total = job.steps_done, job.steps_total
    if job.started_at is None or job.kind not in ESTIMATED_KINDS or not 0 < done < total or done < total * MIN_SHARE:
        return None
    elapsed = (now - job.started_at).total_seconds()
    return round(elapsed * (total - done) / done) if elapsed >= MIN_SECONDS else None
