"""What each kind of job does. Each may be carried out twice without harm, and breaks off at any of its steps.

``options`` by kind. Export: ``layout``. Compression: ``method`` (auto, llm, heuristic), ``hold``, and ``sessions``,
the keys of some; without it all that are due. Rebuild: ``tables``; without it all indexes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime

from memoryhub.jobs.downloads import new_file
from memoryhub.jobs.progress import Progress
from memoryhub.jobs.queue import WORK, Outcome
from memoryhub.lib.errors import Gone
from memoryhub.models import Job
from memoryhub.runs.compress_all import compress_sessions, due_sessions
from memoryhub.search.rebuild import rebuild_indexes
from memoryhub.sync.exporting import write_archive
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.audit import Actor, By


def _export(job: Job, progress: Progress, clock: Callable[[], datetime]) -> Outcome:
    workspace = _workspace(job)
    with new_file(job) as out:
        report = write_archive(
            workspace, job.options.get("layout", "auto"), out, by=By(_actor(job), clock()), step=progress.step
        )
        size = out.tell()
        progress.keep(stage="")  # cancelled at the last moment, it leaves no file
    result = {"layout": report.plan.layout, "files": report.files, "written": report.written, "bytes": size}
    return result, f"{workspace.slug}-{report.plan.layout}.zip"


def _compress(job: Job, progress: Progress, clock: Callable[[], datetime]) -> Outcome:
    workspace = _workspace(job)
    counts: Counter[str] = Counter(job.result.get("counts", {}))  # of the worker before, if that was killed
    wanted = job.options.get("sessions")
    chosen = Session.objects.filter(workspace=workspace, key__in=wanted) if wanted else due_sessions(workspace)
    options = {"method": job.options.get("method", "auto"), "hold": bool(job.options.get("hold"))}

    def note(run: Run, total: int) -> None:
        stage = run.session.key[:200] if run.session else ""
        result = {"counts": dict(counts), "run": run.pk}
        progress.keep(steps_done=counts.total(), steps_total=total, stage=stage, result=result)

    runs = compress_sessions(
        list(chosen.values_list("pk", flat=True)),
        options=options,
        counts=counts,
        actor=_actor(job),
        clock=clock,
        note=note,
        look=progress.look,
    )
    for _ in runs:
        progress.keep(steps_done=counts.total(), result={"counts": dict(counts)})
    return {"counts": dict(counts)}, ""


def _rebuild(job: Job, progress: Progress, _clock: Callable[[], datetime]) -> Outcome:
    found = rebuild_indexes(job.options.get("tables", ()), step=progress.step)
    return {"indexes": found}, ""


def _actor(job: Job) -> Actor:
    return Actor("person", job.requested_by)


def _workspace(job: Job) -> Workspace:
    if job.workspace is None:
        raise Gone("It is asked for on a page of a workspace.", code="job_without_workspace")
    return job.workspace


WORK |= {
    Job.Kind.EXPORT: _export,
    Job.Kind.COMPRESSION: _compress,
    Job.Kind.REBUILD: _rebuild,
}
