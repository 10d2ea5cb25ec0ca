"""All long work in one list, whatever table it stands in: jobs, imports, runs, syncs, and backups of the hub."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.backups.folder import CANCELLABLE, read_state, step_under_way
from memoryhub.jobs.heartbeat_files import lives, where_at, worker_lives
from memoryhub.jobs.names import import_name
from memoryhub.models import Job
from sessions_app.models import ImportReport, Run, SyncState, Workspace
from sessions_app.models.runs import LIVE_STATUSES

LATELY = timedelta(days=1)
MOST_SHOWN = 100  # of each table
TRUSTED_SHARE = 0.05  # of the work has to be done before it tells how long the rest takes
TRUSTED_SECONDS = 3.0
FRESH = timedelta(minutes=1)  # of a heartbeat that shows that some worker lives
PATIENCE = timedelta(seconds=10)  # before waiting work says that no worker runs
UNITS = {"export": "rows", "compression": "sessions", "rebuild": "rows", "import": "files"}
STEPS: dict[str, Promise | str] = {"copying": _("copying"), "packing": _("packing"), "checking": _("checking")}
EVEN_KINDS = ("export", "import")  # whose steps take about as long each


@dataclass(frozen=True)
class Piece:
    """One piece of long work. ``table``: job, import, run, sync or backup; ``number``: its key there.

    ``unit``: of what ``done`` and ``total`` count; "" where only its stage is known. ``seconds_left`` only where what
    is done tells. ``is_interrupted``: its worker was killed. ``is_stranded``: it waits, and no worker runs that could
    take it up.
    """

    table: str
    number: int
    kind: str
    workspace: Workspace | None
    status: str
    requested_by: str
    created_at: datetime | None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    done: int = 0
    total: int = 0
    unit: str = ""
    stage: str = ""
    error: str = ""
    seconds_left: int | None = None
    is_cancelling: bool = False
    is_interrupted: bool = False
    is_stranded: bool = False
    row: Any = None

    @property
    def name(self) -> str:
        return f"{self.table}-{self.number}"

    @property
    def is_live(self) -> bool:
        return self.status in LIVE_STATUSES

    @property
    def order(self) -> tuple[bool, float]:
        moment = self.finished_at or self.created_at
        return self.is_live, moment.timestamp() if moment else 0.0


def list_work(workspaces: QuerySet[Workspace], *, of_hub: bool, now: datetime, with_runs: bool = True) -> list[Piece]:
    """Return what is under way, waits, or ended within a day: first what goes on, then the latest.

    ``of_hub``: with what is of no workspace, imports of new ones and backups too. ``with_runs``: runs of the
    workspaces too; of those that are over only the long ones, which are about no single session, and no edits.
    """
    jobs = list(_jobs(workspaces, now, of_hub=of_hub))
    at_hand = {job.row.result.get("run") for job in jobs if job.is_live}  # a job tells of its runs itself
    runs = [run for run in _runs(workspaces, now) if run.number not in at_hand] if with_runs else []
    pieces = [*jobs, *_imports(workspaces, now, of_hub=of_hub), *_syncs(workspaces, now), *runs]
    pieces += _backup(now) if of_hub else []
    return sorted(pieces, key=lambda piece: piece.order, reverse=True)


def live_count(workspaces: QuerySet[Workspace], *, of_hub: bool) -> int:
    """Count what is under way or waits, in one query."""
    mine = Q(workspace__in=workspaces.order_by().values("pk")) | (Q(workspace=None) if of_hub else Q(pk__in=[]))
    tables: Sequence[QuerySet[Any]] = (Job.objects.all(), ImportReport.objects.all(), Run.objects.all())
    jobs, imports, runs = (rows.filter(mine, status__in=LIVE_STATUSES).order_by().values("pk") for rows in tables)
    return int(jobs.union(imports, runs, all=True).count())


def job_piece(job: Job, now: datetime) -> Piece:
    """Return a job as the list shows it."""
    is_running = job.status == Job.Status.RUNNING
    is_interrupted = is_running and lives(f"job-{job.pk}") is False
    is_moving = is_running and not is_interrupted
    left = _seconds_left(job.kind, job.started_at, job.steps_done, job.steps_total, now) if is_moving else None
    return Piece(
        table="job",
        number=job.pk,
        kind=job.kind,
        workspace=job.workspace,
        status=job.status,
        requested_by=job.requested_by,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        done=job.steps_done,
        total=job.steps_total,
        unit=UNITS[job.kind],
        stage=job.stage,
        error=job.error,
        seconds_left=left,
        is_cancelling=job.cancel_asked_at is not None and is_running,
        is_interrupted=is_interrupted,
        is_stranded=(is_interrupted or job.status == Job.Status.QUEUED) and is_stranded(job.created_at, now),
        row=job,
    )


def import_piece(report: ImportReport, now: datetime) -> Piece:
    """Return an import as the list shows it; the file at hand is known on the worker's own machine."""
    is_running = report.status == ImportReport.Status.RUNNING
    is_interrupted = is_running and lives(import_name(report.pk)) is False
    left = _seconds_left("import", report.started_at, report.files_done, report.file_count, now)
    return Piece(
        table="import",
        number=report.pk,
        kind="import",
        workspace=report.workspace,
        status=report.status,
        requested_by=report.requested_by.get_username() if report.requested_by else gettext("a command"),
        created_at=report.created_at,
        started_at=report.started_at,
        finished_at=report.finished_at,
        done=report.files_done,
        total=report.file_count,
        unit="files",
        stage=where_at(import_name(report.pk)) if is_running else "",
        error=report.error if not is_running else "",
        seconds_left=left if is_running and not is_interrupted else None,
        is_cancelling=report.cancel_asked_at is not None and is_running,
        is_interrupted=is_interrupted,
        is_stranded=(is_interrupted or report.status == ImportReport.Status.QUEUED)
        and is_stranded(report.created_at, now),
        row=report,
    )


def is_stranded(asked_at: datetime | None, now: datetime) -> bool:
    """Tell whether work waits that nobody will take up: for a while already, and no worker runs on this machine.

    On PostgreSQL a worker of another machine may be at another job, and take this one up then.
    """
    if asked_at is None or now - asked_at <= PATIENCE or worker_lives():
        return False
    busy = Job.objects.filter(status=Job.Status.RUNNING, heartbeat_at__gte=now - FRESH)
    return connection.vendor == "sqlite" or not busy.exists()


def _jobs(workspaces: QuerySet[Workspace], now: datetime, *, of_hub: bool) -> Iterable[Piece]:
    mine = Q(workspace__in=workspaces) | (Q(workspace=None) if of_hub else Q(pk__in=[]))
    rows = Job.objects.filter(mine).filter(_lately(now)).select_related("workspace")
    return (job_piece(job, now) for job in rows.order_by("-id")[:MOST_SHOWN])


def _imports(workspaces: QuerySet[Workspace], now: datetime, *, of_hub: bool) -> Iterable[Piece]:
    mine = Q(workspace__in=workspaces) | (Q(workspace=None) if of_hub else Q(pk__in=[]))
    rows = ImportReport.objects.filter(mine).filter(_lately(now)).select_related("workspace", "requested_by")
    return (import_piece(report, now) for report in rows.order_by("-id")[:MOST_SHOWN])


def _lately(now: datetime) -> Q:
    return Q(status__in=LIVE_STATUSES) | Q(finished_at__gte=now - LATELY)


def _runs(workspaces: QuerySet[Workspace], now: datetime) -> Iterable[Piece]:
    rows = Run.objects.filter(_lately(now), workspace__in=workspaces)
    is_long = Q(session=None) & ~Q(kind=Run.Kind.EDIT)
    rows = rows.filter(Q(status__in=LIVE_STATUSES) | is_long, origin=Run.Origin.HUB)
    return (run_piece(run, now) for run in rows.select_related("workspace", "session").order_by("-id")[:MOST_SHOWN])


def run_piece(run: Run, now: datetime) -> Piece:
    """Return a run as the list shows it."""
    is_by_row = run.kind in (Run.Kind.SCAN, Run.Kind.EMBEDDING, Run.Kind.EDIT)
    return Piece(
        table="run",
        number=run.pk,
        kind=run.kind,
        workspace=run.workspace,
        status=run.status,
        requested_by=run.requested_by,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        done=run.steps_done,
        total=run.steps_total if run.steps_total > 1 else 0,
        unit="rows" if is_by_row else "parts",
        stage=gettext(run.stage),
        error=run.error,
        is_stranded=run.status == Run.Status.QUEUED and is_stranded(max(run.created_at, run.not_before), now),
        row=run,
    )


def _syncs(workspaces: QuerySet[Workspace], now: datetime) -> Iterable[Piece]:
    rows = SyncState.objects.filter(workspace__in=workspaces).exclude(requested_at=None).select_related("workspace")
    return (
        Piece(
            table="sync",
            number=state.pk,
            kind="sync",
            workspace=state.workspace,
            status="queued",
            requested_by="",
            created_at=state.requested_at,
            is_stranded=is_stranded(state.requested_at, now),
        )
        for state in rows[:MOST_SHOWN]
    )


def _backup(now: datetime) -> list[Piece]:
    step, state = step_under_way(now), read_state()
    if not step:
        return []
    is_waiting = step == "waiting"
    asked_at = datetime.fromisoformat(state.wanted_at) if state.wanted_at else None
    piece = Piece(
        table="backup",
        number=0,
        kind="backup",
        workspace=None,
        status="queued" if is_waiting else "running",
        requested_by="",
        created_at=asked_at,
        stage="" if is_waiting else str(STEPS.get(step, step)),
        is_cancelling=bool(state.cancel_asked_at) and step in CANCELLABLE,
        is_stranded=is_waiting and is_stranded(asked_at, now),
        row=step,
    )
    return [piece]


def _seconds_left(kind: str, started_at: datetime | None, done: int, total: int, now: datetime) -> int | None:
    """Return how long the rest takes if it goes on as it did; None where too little is done to tell."""
    if started_at is None or kind not in EVEN_KINDS or not 0 < done < total or done < total * TRUSTED_SHARE:
        return None
    elapsed = (now - started_at).total_seconds()
    return round(elapsed * (total - done) / done) if elapsed >= TRUSTED_SECONDS else None
