"""Files that jobs create for download: kept in the storage for a day, readable only by their owner.

A job writes its file in the hub's own folder first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db.models import Q

from memoryhub.lib.database import db_retry
from memoryhub.models import Job
from memoryhub.processes import this_home
from sessions_app.models import Workspace
from sessions_app.services.audit import By, record

KEPT = timedelta(days=1)
FOLDER = "downloads"
_NAME = re.compile(r"\.?job-(\d+)\.(?:out|out\.[0-9a-f]{32}\.part|(?:\d+\.)?part)")


def find_file(job: Job) -> str:
    """Return the name of the file that a job created in the default storage; "" if it doesn't exist."""
    name = _name_of(job)
    return name if job.file_name and default_storage.exists(name) else ""


def other_host(job: Job) -> str:
    """Return the host that has a job's file, if this hub can't read it; or else ""."""
    home = str(job.result.get("home", ""))
    is_elsewhere = job.file_name and home and home != this_home() and not settings.MEMORYHUB_FILES
    return home.partition(":")[0] if is_elsewhere else ""


def _name_of(job: Job) -> str:
    return f"{FOLDER}/job-{job.pk}.out"


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
            out.seek(0)
            default_storage.save(_name_of(job), File(out))
    finally:
        part.unlink(missing_ok=True)


def remove_file(job: Job) -> None:
    """Delete a job's file, if it exists."""
    default_storage.delete(_name_of(job))


@db_retry.retried
def record_download(job: Job, *, by: By) -> None:
    """Write the audit record of a downloaded file."""
    text = f"The file of export {job.pk} was downloaded"
    record(by, "job.downloaded", "job", job.pk, text, workspace=job.workspace)


def remove_old_downloads(now: datetime) -> int:
    """Delete files that are older than a day or have no job; return how many."""
    Job.objects.exclude(file_name="").filter(finished_at__lt=now - KEPT).update(file_name="")
    stored, parts = default_storage.listdir(FOLDER)[1], [file.name for file in _folder().iterdir()]
    found = {name: int(match[1]) for name in {*stored, *parts} if (match := _NAME.fullmatch(name))}
    jobs = Job.objects.filter(pk__in=set(found.values()))
    kept = set(jobs.filter(~Q(file_name="") | Q(finished_at=None)).values_list("pk", flat=True))
    gone = [name for name, pk in found.items() if pk not in kept]
    for name in gone:
        default_storage.delete(f"{FOLDER}/{name}")
        (_folder() / name).unlink(missing_ok=True)
    return len(gone)


def discard_downloads(workspace: Workspace, now: datetime) -> None:
    """Delete all files of a workspace and cancel its exports: they may contain forgotten text."""
    live = Job.objects.filter(workspace=workspace, kind=Job.Kind.EXPORT, status=Job.Status.RUNNING)
    live.filter(cancel_asked_at=None).update(cancel_asked_at=now)
    for job in Job.objects.filter(workspace=workspace).exclude(file_name=""):
        remove_file(job)
    Job.objects.filter(workspace=workspace).exclude(file_name="").update(file_name="")


def _folder() -> Path:
    folder: Path = settings.MEMORYHUB_HOME / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
