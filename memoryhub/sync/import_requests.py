"""Imports as jobs: request them, carry them out, and store their results as reports."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from memoryhub.forgetting.import_filter import FORGOTTEN, import_rules, plain_problems
from memoryhub.hygiene.scanning import scan_first
from memoryhub.jobs.kinds import Clock
from memoryhub.jobs.progress import JobCancelled, Progress
from memoryhub.jobs.queue import cancel_job, local_job, request_job
from memoryhub.jobs.uploads import discard_upload, is_upload, waiting_imports
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Conflict, MemoryHubError
from memoryhub.lib.layouts.detect import detect
from memoryhub.models import Job
from memoryhub.processes import home_of_files
from memoryhub.sync.importing import (
    ARCHIVE_SUFFIXES,
    ImportCancelled,
    ImportRefused,
    ImportResult,
    import_workspace,
    opened_source,
)
from memoryhub.sync.importing import Progress as FileProgress
from memoryhub.sync.other_machines import leave_to_others
from memoryhub.sync.projects import home_in
from sessions_app.models import ImportProblem, ImportReport, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.sources import folder_hash, store_problems
from sessions_app.services.syncing import switch_sync
from sessions_app.services.workspaces import lock_workspace

COMMAND_NAME = "a command"
PROBLEM_OUTCOMES = ("rejected", "repaired", "held")  # of problems that somebody should check
FAILURES = {  # messages for errors of the queue
    "interrupted": "The hub stopped during this import. What was imported so far is kept. Import again to continue.",
    "unexpected": "An unexpected error stopped this import. See the hub's log. Everything imported so far is kept.",
}


def request_import(
    *, path: str, user: User, name: str = "", layout: str = "auto", project: str = "", follow: bool = False
) -> ImportReport:
    """Queue an import and return its report, or the report of the pending import of the same folder and project.

    ``follow``: let the worker follow the folder afterwards.
    """
    by = By(Actor("person", user.get_username()), timezone.now())
    values = {"path": path, "project": project, "requested_by": user, "name": name, "wanted_layout": layout or "auto"}
    return _request(values, by, follow=follow)


@db_retry.retried
@transaction.atomic
def _request(values: dict[str, Any], by: By, *, follow: bool) -> ImportReport:
    path, project = values["path"], values["project"]
    workspace = Workspace.objects.filter(path=path, project=project).first()
    report = ImportReport.objects.create(**values, workspace=workspace, created_at=by.at)
    options = {"report": report.pk, "source": path} | ({"follow": True} if follow else {})
    is_shared = is_upload(Path(path)) and bool(settings.MEMORYHUB_FILES)
    home = home_of_files() if Path(path).is_relative_to(settings.MEMORYHUB_HOME) and not is_shared else ""
    key = f"import:{folder_hash(path, project)}"
    job, is_new = request_job("import", workspace, options, by=by, key=key, home=home)
    if not is_new:
        report.delete()
        return ImportReport.objects.get(job=job)
    report.job = job
    report.save(update_fields=["job"])
    return report


def cancel_import(report: ImportReport, *, by: By) -> None:
    """Cancel an import: a queued one at once, a running one after the current file. Raises Conflict."""
    try:
        if report.job is None:
            raise Conflict("This import has no job any more.")
        cancel_job(report.job, by=by)
    except Conflict:
        over = gettext("This import has already finished.")
        raise Conflict(over, code="import_is_over") from None


def carry_out_import(job: Job, progress: Progress, clock: Clock) -> dict[str, Any]:
    """Carry out a requested import, and request the first scan of its workspace."""
    report = ImportReport.objects.get(pk=job.options["report"])
    if not is_upload(Path(report.path)):
        leave_to_others(job, report.path)
    actor = Actor("person", job.requested_by)
    if (projects := archived_projects(report)) and report.requested_by:
        report.project, report.name = projects[0], ""
        for project in projects[1:]:
            request_import(path=report.path, user=report.requested_by, layout=report.wanted_layout, project=project)
    result = _import(report, progress, by=By(actor, clock()))
    _end_if_cancelled(result, progress)
    _discard_forgotten(report)
    if job.options.get("follow"):
        switch_sync(result.workspace, follow=True, by=By(actor, clock()))
    scan_first(result.workspace, by=By(actor, clock()))
    return progress.result


def _discard_forgotten(report: ImportReport) -> None:
    """Delete an upload with forgotten content after the last import of it."""
    found = ImportProblem.objects.filter(report__path=report.path, what__startswith=FORGOTTEN)
    if found.exists() and not waiting_imports(report.path).exclude(pk=report.pk).exists():
        discard_upload(report.path)


def archived_projects(report: ImportReport) -> list[str]:
    """Return the names of the projects in an archive with several, if none was chosen; each is imported."""
    path = Path(report.path)
    if report.project or not path.name.lower().endswith(ARCHIVE_SUFFIXES):
        return []
    with opened_source(path, timezone.now()) as (folder, _), suppress(MemoryHubError):
        home = home_in(folder, detect(folder, report.wanted_layout))
        return home.names() if home and len(home.projects) > 1 else []
    return []


def run_import(report: ImportReport, *, by: By, progress: FileProgress | None = None) -> ImportResult:
    """Carry out an import in this process, for commands, and store the outcome in its report.

    ``progress`` is called after each file. Raises the errors of ``import_workspace``.
    """
    options = {"report": report.pk, "source": report.path}
    command = Actor(by.actor.kind, COMMAND_NAME)
    with suppress(JobCancelled), local_job("import", None, options, actor=command, clock=timezone.now) as running:
        ImportReport.objects.filter(pk=report.pk).update(job=running.job)
        result = _import(report, running, by=by, on_file=progress, may_read=anywhere)
        _end_if_cancelled(result, running)
    return result


def import_now(report: ImportReport, *, by: By) -> ImportResult:
    """Carry out an import without a job of its own, and store the outcome in its report.

    Raises the errors of ``import_workspace``.
    """
    result = import_workspace(
        Path(report.path), by=by, name=report.name, layout=report.wanted_layout, project=report.project
    )
    _store_outcome(report, result)
    report.status, report.finished_at = Job.Status.DONE, by.at
    report.save(update_fields=["status", "finished_at"])
    return result


def anywhere(_path: Path) -> bool:
    """Return True: commands may read any folder, unlike pages."""
    return True


def _import(
    report: ImportReport,
    progress: Progress,
    *,
    by: By,
    on_file: FileProgress | None = None,
    may_read: Callable[[Path], bool] | None = None,
) -> ImportResult:
    def step(done: int, file_count: int, file: str) -> None:
        if on_file:
            on_file(done, file_count, file)
        try:
            if done == file_count:
                progress.save(steps_done=done, steps_total=file_count, stage=file[:200])
            else:
                progress.step(done, file_count, file)
        except JobCancelled:
            if done != file_count:
                raise ImportCancelled(cancelled_message(done, file_count)) from None

    path = Path(report.path)
    options = {"name": report.name, "layout": report.wanted_layout, "project": report.project}
    result = import_workspace(path, by=by, progress=step, may_read=may_read, **options)  # type: ignore[arg-type]
    _store_outcome(report, result)
    progress.result = {"added": dict(+result.tally.added)}
    return result


def _end_if_cancelled(result: ImportResult, progress: Progress) -> None:
    if result.cancellation:
        progress.save(result=progress.result)  # raises JobCancelled


def _store_outcome(report: ImportReport, result: ImportResult) -> None:
    tally = result.tally
    with transaction.atomic():
        lock_workspace(result.workspace.pk)  # nothing can be forgotten meanwhile
        problems = plain_problems(tally.problems, import_rules(result.workspace))
        report.refresh_from_db()
        report.workspace, report.project = result.workspace, result.found.project
        report.layout, report.layout_version = result.found.layout, result.found.version
        report.added, report.updated = dict(+tally.added), dict(+tally.updated)
        report.unchanged = dict(+tally.unchanged)
        report.problem_count = store_problems(report, problems)
        report.error = result.cancellation
        report.save()
        Job.objects.filter(import_report=report).update(workspace=result.workspace)


def close_report(job: Job, now: datetime) -> None:
    """Copy the outcome of an import's job to its report."""
    report = ImportReport.objects.filter(pk=job.options["report"]).first()
    if report is None:
        return
    report.status, report.finished_at, report.error_code = job.status, now, ""
    report.files_done, report.file_count = job.steps_done, job.steps_total
    report.workspace = report.workspace or _workspace_of(report)
    if job.status == Job.Status.FAILED:
        report.error = FAILURES.get(job.error_code, job.error)
        report.error_code = ImportRefused.code if job.error_code == "unexpected" else job.error_code
    elif job.status == Job.Status.CANCELLED and not report.error:
        has_begun = job.started_at is not None
        message = cancelled_message(job.steps_done, job.steps_total)
        report.error = message if has_begun else "Cancelled before it started. Nothing was read."
    elif job.status == Job.Status.DONE:
        report.dismissed_at = _earlier_dismissal(report)
    report.save()
    Job.objects.filter(pk=job.pk).update(workspace=report.workspace)


def _workspace_of(report: ImportReport) -> Workspace | None:
    return Workspace.objects.filter(path=report.path, project=report.project).first()


def _earlier_dismissal(report: ImportReport) -> datetime | None:
    """Return when the warnings of the workspace's previous import were dismissed, if this one has no others."""
    earlier = ImportReport.objects.filter(workspace=report.workspace, pk__lt=report.pk, status=Job.Status.DONE)
    previous = earlier.exclude(workspace=None).order_by("-id").first()
    if previous is None or previous.dismissed_at is None:
        return None
    return previous.dismissed_at if _notes(report) <= _notes(previous) else None


def _notes(report: ImportReport) -> set[tuple[object, ...]]:
    rows = report.problems.filter(outcome__in=PROBLEM_OUTCOMES)
    return set(rows.order_by().values_list("file", "line", "what", "action"))


def cancelled_message(done: int, file_count: int) -> str:
    """Return the message about how far a cancelled import came."""
    kept = f"Cancelled after {done:,} of {file_count:,} files"
    return f"{kept}. Everything read so far is kept. Import again to continue."
