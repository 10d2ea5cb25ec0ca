"""Files that jobs create for download: kept for a day in the hub's folder, readable only by its owner."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

from django.conf import settings

from memoryhub.lib import db_retry
from memoryhub.models import Job
from memoryhub.processes import this_home
from sessions_app.models import Workspace
from sessions_app.services.audit import By, record

KEPT = timedelta(days=1)
_NAME = re.compile(r"job-(\d+)\.(?:out|(?:\d+\.)?part)")


def find_file(job: Job) -> Path | None:
    """Return the file that a job created, if it still exists."""
    file = _folder() / f"job-{job.pk}.out"
    return file if job.file_name and file.is_file() and not file.is_symlink() else None


def other_host(job: Job) -> str:
    """Return the host that has a job's file; "" if it is in this hub's folder."""
    home = str(job.result.get("home", ""))
    return home.partition(":")[0] if job.file_name and home and home != this_home() else ""


@contextmanager
def create_file(job: Job) -> Iterator[IO[bytes]]:
    """Yield a file for a job to write. It gets its name when the block succeeds."""
    for leftover in _folder().glob(f"job-{job.pk}.*part"):  # of a killed worker
        leftover.unlink(missing_ok=True)
    part = _folder() / f"job-{job.pk}.{job.fencing_number}.part"
    handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "w+b") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(_folder() / f"job-{job.pk}.out")
    finally:
        part.unlink(missing_ok=True)


def remove_file(job: Job) -> None:
    """Delete a job's file, if it exists."""
    (_folder() / f"job-{job.pk}.out").unlink(missing_ok=True)


@db_retry.retried
def record_download(job: Job, *, by: By) -> None:
    """Write the audit record of a downloaded file."""
    text = f"The file of export {job.pk} was downloaded"
    record(by, "job.downloaded", "job", job.pk, text, workspace=job.workspace)


def remove_old_downloads(now: datetime) -> int:
    """Delete this machine's files that are older than a day or have no job; return how many."""
    Job.objects.exclude(file_name="").filter(finished_at__lt=now - KEPT).update(file_name="")
    found = {int(match[1]): file for file in _folder().iterdir() if (match := _NAME.fullmatch(file.name))}
    kept = set(Job.objects.filter(pk__in=found).exclude(file_name="").values_list("pk", flat=True))
    kept |= set(Job.objects.filter(pk__in=found, finished_at=None).values_list("pk", flat=True))
    gone = [file for pk, file in found.items() if pk not in kept]
    for file in gone:
        file.unlink(missing_ok=True)
    return len(gone)


def discard_downloads(workspace: Workspace, now: datetime) -> None:
    """Delete all files of a workspace and cancel its exports: they may contain forgotten text."""
    live = Job.objects.filter(workspace=workspace, kind=Job.Kind.EXPORT, status=Job.Status.RUNNING)
    live.filter(cancel_asked_at=None).update(cancel_asked_at=now)
    for job in Job.objects.filter(workspace=workspace).exclude(file_name=""):
        remove_file(job)
    Job.objects.filter(workspace=workspace).exclude(file_name="").update(file_name="")


def _folder() -> Path:
    folder: Path = settings.MEMORYHUB_HOME / "downloads"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
