"""Import requests of pages: kept as a report, carried out by the worker."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User

from memoryhub.demo import write_demo
from sessions_app.models import ImportReport, Workspace

KNOWN_HOMES = ("~/.nanobot", "~/.grip", "~/.local/grid")


def request_import(*, path: str, user: User, name: str = "", layout: str = "auto") -> ImportReport:
    """Keep an import request; the caller enqueues it."""
    workspace = Workspace.objects.filter(path=path).first()
    return ImportReport.objects.create(
        path=path, requested_by=user, name=name, wanted_layout=layout or "auto", workspace=workspace
    )


def store_upload(name: str, chunks: Iterable[bytes]) -> Path:
    """Keep an uploaded file in a folder of its own in the hub's home; its name is made harmless."""
    folder = settings.MEMORYHUB_HOME / "agents" / "uploads" / uuid.uuid4().hex
    folder.mkdir(parents=True, mode=0o700)
    file = folder / (re.sub(r"[^\w.-]", "_", name).lstrip(".")[-100:] or "upload")
    with file.open("wb") as out:
        for chunk in chunks:
            out.write(chunk)
    return file


def prepare_demo(today: date) -> dict[str, Path]:
    """Write the demo agents' folders into the hub's home; return each by its workspace's name.

    The story's last day is that of the first time, so that opening the demo again changes nothing.
    """
    folder = settings.MEMORYHUB_HOME / "agents" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    last_day = folder / "last-day"
    if not last_day.exists():
        last_day.write_text(today.isoformat())
    return write_demo(folder, today=date.fromisoformat(last_day.read_text()))


def close_interrupted_imports(now: datetime) -> int:
    """Mark imports that a stopped hub left half-done as failed; return how many. What they took stays.

    For the one embedded worker, before it starts: with several workers another one may be at it.
    """
    left = ImportReport.objects.filter(status=ImportReport.Status.RUNNING)
    return left.update(
        status=ImportReport.Status.FAILED,
        error_code="interrupted",
        error="The hub stopped during this import. What was taken stays; import again for the rest.",
        finished_at=now,
    )


def known_folders() -> list[str]:
    """Return the usual homes of the agents that are on this machine."""
    return [home for home in KNOWN_HOMES if Path(home).expanduser().is_dir()]
