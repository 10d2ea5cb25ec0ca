"""Import requests of pages: kept as a report, carried out by the worker, cancelled, and taken up again."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from memoryhub.demo.workspaces import let_the_demo_propose
from memoryhub.hygiene.scanning import scan_first
from memoryhub.jobs.heartbeat_files import at_work, clear_away, lives
from memoryhub.jobs.names import import_name
from memoryhub.lib import db_retry
from memoryhub.lib.errors import Conflict, MemoryHubError
from memoryhub.sync.importing import ImportCancelled, ImportRefused, ImportResult, Progress, import_workspace
from sessions_app.models import ImportReport, Workspace
from sessions_app.services.audit import Actor, By, record
from sessions_app.services.sources import store_problems

logger = logging.getLogger(__name__)
KNOWN_HOMES = ("~/.nanobot", "~/.grip", "~/.local/grid")
LIVE = (ImportReport.Status.QUEUED, ImportReport.Status.RUNNING)
PROGRESS_SECONDS = 0.25  # how often a report's progress is written at most
INTERRUPTED = "interrupted"  # the error code of an import that was taken up again, and of one that is given up


def request_import(*, path: str, user: User, name: str = "", layout: str = "auto") -> ImportReport:
    """Keep an import request; the caller enqueues it."""
    workspace = Workspace.objects.filter(path=path).first()
    return ImportReport.objects.create(
        path=path, requested_by=user, name=name, wanted_layout=layout or "auto", workspace=workspace
    )


@db_retry.retried
@transaction.atomic
def cancel_import(report: ImportReport, *, by: By) -> None:
    """Cancel an import: one that waits at once, one that goes on after the file at hand. Raises Conflict."""
    report = ImportReport.objects.select_for_update(of=("self",)).select_related("workspace").get(pk=report.pk)
    if report.status not in LIVE:
        raise Conflict(gettext("The import is over already: there is nothing to cancel."), code="import_is_over")
    if report.cancel_asked_at:
        return
    report.cancel_asked_at = by.at
    if report.status == ImportReport.Status.QUEUED:
        report.status, report.finished_at = ImportReport.Status.CANCELLED, by.at
        report.error = "Cancelled before it began: nothing was read."
    report.save(update_fields=["cancel_asked_at", "status", "finished_at", "error"])
    text = f"Import {report.pk} was cancelled"
    record(by, "import.cancelled", "import", report.pk, text, workspace=report.workspace)


def carry_out_import(pk: int, *, clock: Callable[[], datetime]) -> None:
    """Carry out an import that a page asked for, and ask for the workspace's first scan; the report says how it went.

    One that is over, or was cancelled while it waited, is left alone.
    """
    report = ImportReport.objects.select_related("requested_by").filter(pk=pk, status__in=LIVE).first()
    if report is None:
        return
    actor = Actor("person", report.requested_by.get_username() if report.requested_by else "unknown")
    try:
        result = run_import(report, by=By(actor, clock()))
    except MemoryHubError as error:
        logger.warning("import %s failed: %s", pk, error.code)
    else:
        scan_first(result.workspace, by=By(actor, clock()))
        let_the_demo_propose(result.workspace, now=clock())


def run_import(report: ImportReport, *, by: By, progress: Progress | None = None) -> ImportResult:
    """Carry out a stored import request and keep its outcome, problems included, with the report.

    It looks between two files whether the report was cancelled. Raises what ``import_workspace`` raises, after the
    report says so.
    """
    ImportReport.objects.filter(pk=report.pk).update(status=ImportReport.Status.RUNNING, started_at=by.at)
    try:
        with at_work(import_name(report.pk)) as note:
            result = import_workspace(
                Path(report.path),
                by=by,
                name=report.name,
                layout=report.wanted_layout,
                progress=_kept_progress(report, note, progress),
            )
            _keep_outcome(report, result)
    except MemoryHubError as error:
        _keep_failure(report, error, by.at)
        raise
    except Exception:
        words = "Something went wrong in the middle; the hub's log says what. What was taken stays: import again."
        _keep_failure(report, ImportRefused(words), by.at)
        raise
    except KeyboardInterrupt:
        _keep_stopped(report)
        raise
    return result


def _kept_progress(report: ImportReport, note: Callable[[str], None], further: Progress | None) -> Progress:
    """Return what keeps an import's progress, several times a second at most, and looks whether it is to end."""
    written_at = 0.0

    def keep(done: int, file_count: int, file: str) -> None:
        nonlocal written_at
        if further:
            further(done, file_count, file)
        if done != file_count and time.monotonic() - written_at <= PROGRESS_SECONDS:
            return
        mine = ImportReport.objects.filter(pk=report.pk)
        mine.update(files_done=done, file_count=file_count)
        written_at = time.monotonic()
        note(file)
        if done != file_count and mine.exclude(cancel_asked_at=None).exists():
            raise ImportCancelled(cancelled_words(done, file_count))

    return keep


def cancelled_words(done: int, file_count: int) -> str:
    """Say how far a cancelled import came."""
    kept = f"Cancelled after {done:,} of {file_count:,} files; what was read is kept"
    return f"{kept}, import again to go on."


def _keep_stopped(report: ImportReport) -> None:
    """Note that somebody ended the import at a prompt, wherever it was: the file at hand is not taken."""
    report.refresh_from_db()
    report.status, report.finished_at = ImportReport.Status.CANCELLED, timezone.now()
    report.error = cancelled_words(report.files_done, report.file_count)
    report.save(update_fields=["status", "finished_at", "error"])


def _keep_outcome(report: ImportReport, result: ImportResult) -> None:
    tally = result.tally
    with transaction.atomic():
        report.refresh_from_db()
        report.workspace = result.workspace
        report.layout, report.layout_version = result.found.layout, result.found.version
        report.added, report.updated = dict(+tally.added), dict(+tally.updated)
        report.unchanged = dict(+tally.unchanged)
        report.problem_count = store_problems(report, tally.problems)
        report.status = ImportReport.Status.CANCELLED if result.broken_off else ImportReport.Status.DONE
        report.error, report.error_code = result.broken_off, ""
        report.finished_at = timezone.now()
        report.save()


def _keep_failure(report: ImportReport, error: MemoryHubError, now: datetime) -> None:
    workspace = Workspace.objects.filter(path=report.path).first()
    ImportReport.objects.filter(pk=report.pk).update(
        status=ImportReport.Status.FAILED,
        workspace=workspace,
        error_code=error.code,
        error=error.message,
        finished_at=now,
    )


def uploads() -> Path:
    """Return the folder of uploaded files, each of which lies in one of its own there."""
    folder: Path = settings.MEMORYHUB_HOME / "agents" / "uploads"
    return folder


def store_upload(name: str, chunks: Iterable[bytes]) -> Path:
    """Keep an uploaded file in a folder of its own in the hub's home; its name is made harmless."""
    folder = uploads() / uuid.uuid4().hex
    folder.mkdir(parents=True, mode=0o700)
    file = folder / (re.sub(r"[^\w.-]", "_", name).lstrip(".")[-100:] or "upload")
    with file.open("wb") as out:
        for chunk in chunks:
            out.write(chunk)
    return file


def resume_imports(clock: Callable[[], datetime]) -> int:
    """Go on with imports whose worker was killed on this machine; return how many. What they took stays.

    One that is interrupted again is given up, since it may be what kills the worker; so is one of a command, which
    somebody ended at its prompt.
    """
    running = ImportReport.objects.filter(status=ImportReport.Status.RUNNING)
    gone = [report for report in running if lives(import_name(report.pk)) is False]
    for report in gone:
        mine = running.filter(pk=report.pk, error_code=report.error_code)
        if report.cancel_asked_at:
            words = cancelled_words(report.files_done, report.file_count)
            mine.update(status=ImportReport.Status.CANCELLED, error_code="", error=words, finished_at=clock())
        elif report.error_code == INTERRUPTED or report.requested_by_id is None:
            close_interrupted_imports(clock(), only=report.pk)
        elif mine.update(error_code=INTERRUPTED):
            logger.warning("import %s lost its worker and is taken up again", report.pk)
            carry_out_import(report.pk, clock=clock)
        clear_away(import_name(report.pk))
    return len(gone)


def close_interrupted_imports(now: datetime, *, only: int | None = None) -> int:
    """Mark imports that a stopped hub left half-done as failed; return how many. What they took stays.

    ``only``: one of them. All: for the one embedded worker, before it starts, since with several workers another one
    may be at it; those that can be taken up again are left.
    """
    running = ImportReport.objects.filter(status=ImportReport.Status.RUNNING)
    left = [pk for pk in running.values_list("pk", flat=True) if pk == only or _is_lost(pk, only)]
    return running.filter(pk__in=left).update(
        status=ImportReport.Status.FAILED,
        error_code=INTERRUPTED,
        error="The hub stopped during this import. What was taken stays; import again for the rest.",
        finished_at=now,
    )


def _is_lost(pk: int, only: int | None) -> bool:
    return only is None and lives(import_name(pk)) is None


def known_folders() -> list[str]:
    """Return the usual homes of the agents that are on this machine."""
    return [home for home in KNOWN_HOMES if Path(home).expanduser().is_dir()]
