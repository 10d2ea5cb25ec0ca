"""Files that people upload, in Django's default storage: archives for an import, and tables until they confirm.

An archive is named by the path that it has, or would have, for the hub that stored it. Other hubs find it by the end
of that path.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db.models import QuerySet
from django.utils import timezone

from memoryhub.lib.files.private_files import local_file, local_path
from memoryhub.models import Job
from sessions_app.models import ImportReport, Workspace

FOLDER = "agents/uploads"
TABLES = "tables"
TABLE_NAME = re.compile(r"^[0-9a-f]{32}\Z")  # form fields use search(), so both ends are anchored
TABLES_KEPT = timedelta(days=1)
NAMELESS = "forgotten"  # the name of a deleted upload: its own may contain what was forgotten
_PATH = re.compile(rf"/({FOLDER}/[0-9a-f]{{32}}/[\w.-]+)\Z")


def uploads() -> Path:
    """Return the folder of uploads: in the storage or, if that isn't a folder, only as a part of names."""
    return local_path(default_storage, FOLDER) or Path(settings.MEMORYHUB_HOME, FOLDER)


def store_upload(name: str, upload: File[bytes]) -> Path:
    """Store an uploaded file in a folder of its own, under a safe name, and return its path."""
    safe_name = re.sub(r"[^\w.-]", "_", name).lstrip(".")[-100:] or "upload"
    place = f"{uuid.uuid4().hex}/{safe_name}"
    default_storage.save(f"{FOLDER}/{place}", upload)
    return uploads() / place


def is_upload(path: Path) -> bool:
    """Return whether a path names a stored upload."""
    name = _stored_name(path)
    return bool(name) and default_storage.exists(name)


@contextmanager
def readable_path(path: Path) -> Iterator[Path]:
    """Yield a path at which a file or folder can be read on this machine."""
    name = _stored_name(path)
    if path.exists() or not (name and default_storage.exists(name)):
        yield path
        return
    with local_file(default_storage, name, prefix="memoryhub-upload-") as file:
        yield file


def _stored_name(path: Path) -> str:
    match = _PATH.search(str(path))
    return match[1] if match else ""


def discard_uploads(workspace: Workspace | None) -> None:
    """Delete the uploads that were imported into a workspace; None: those of imports that made no workspace.

    Those that still wait for their import stay: it leaves out what was forgotten.
    """
    own = [workspace.path] if workspace else []
    for path in {*own, *ImportReport.objects.filter(workspace=workspace).values_list("path", flat=True)}:
        if not waiting_imports(path):
            discard_upload(path)


def waiting_imports(path: str) -> QuerySet[ImportReport]:
    """Return the imports of a path that aren't over."""
    return ImportReport.objects.filter(path=path, status="").exclude(job=None)


def discard_upload(path: str) -> None:
    """Delete an upload, if a path names one, and the name of its file from the rows that mention it."""
    name = _stored_name(Path(path))
    if not name:
        return
    default_storage.delete(name)
    nameless = str(Path(path).with_name(NAMELESS + "".join(Path(path).suffixes[-2:])))
    for job in Job.objects.filter(import_report__path=path):
        Job.objects.filter(pk=job.pk).update(options=job.options | {"source": nameless})
    Workspace.objects.filter(path=path).update(path=nameless)
    ImportReport.objects.filter(path=path).update(path=nameless)


def keep_table(data: bytes) -> str:
    """Store a table until it is confirmed, delete tables older than a day, and return its name."""
    oldest = timezone.now() - TABLES_KEPT
    for old in stored_tables():
        with suppress(FileNotFoundError):  # deleted by another process
            if default_storage.get_modified_time(f"{TABLES}/{old}") < oldest:
                default_storage.delete(f"{TABLES}/{old}")
    name = uuid.uuid4().hex
    default_storage.save(f"{TABLES}/{name}", ContentFile(data))
    return name


def discard_tables() -> None:
    """Delete all tables that wait to be confirmed: they may contain forgotten text."""
    for name in stored_tables():
        default_storage.delete(f"{TABLES}/{name}")


def stored_tables() -> list[str]:
    """Return the names of the tables that wait to be confirmed."""
    return [name for name in default_storage.listdir(TABLES)[1] if TABLE_NAME.match(name)]
