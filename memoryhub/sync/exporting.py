"""Export a workspace as a folder or a zip archive, for an agent's program or another hub."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils.translation import gettext

from knowledge_app.services.rows.exporting import (
    cached_records,
    document_records,
    history_records,
    key_value_records,
    knowledge_records,
    observation_records,
)
from memoryhub.graph.export import graph_meta, graph_parts, graph_rows
from memoryhub.jobs.progress import Step, ignore_progress
from memoryhub.lib.errors import Refused
from memoryhub.lib.layouts.coverage import KINDS, ExportPlan
from memoryhub.lib.layouts.hub import SETTINGS
from memoryhub.lib.layouts.snapshot import LABELS, Snapshot
from memoryhub.sync.export_plan import chosen_layout, plan_export
from memoryhub.sync.write_folder import OutFile, write_folder
from sessions_app.models import Session, SourceFile, Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.export import all_sessions
from sessions_app.services.sources import HISTORY_EXTRA

FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # the earliest time in a zip archive: equal memory gives equal bytes
_IDENTITY = re.compile(r"(?:^|/)sessions/([0-9a-f]{32})/")


@dataclass(frozen=True)
class ExportReport:
    """The plan of an export, and what was written: the number of files, and of items by kind."""

    plan: ExportPlan
    files: int
    written: dict[str, int]


def export_workspace(
    workspace: Workspace, dest: Path, layout: str = "auto", *, by: By, step: Step = ignore_progress
) -> ExportReport:
    """Write a workspace to a new or empty folder, or to a new archive if ``dest`` ends in .zip.

    All or nothing: a temporary folder next to ``dest`` is filled, then moved. Modes are 700 for folders and 600 for
    files. ``step`` is called with the number of rows written, and may raise to stop. Raises Invalid, Refused.
    """
    layout = chosen_layout(workspace, layout)
    dest = _free_path(dest)
    if dest.suffix.lower() == ".zip":
        with _temporary_path(dest, is_folder=False) as place:
            with place.open("wb") as out:
                report = _write_zip(workspace, layout, out, step)
                _flush(out)
            _move_to(place, dest)
    else:
        with _temporary_path(dest, is_folder=True) as place:
            report = _write(workspace, layout, lambda file: _write_file(place, file), step)
            _move_to(place, dest)
    _record_export(workspace, report, by)
    return report


def write_archive(
    workspace: Workspace, layout: str, out: IO[bytes], *, by: By, step: Step = ignore_progress
) -> ExportReport:
    """Write a workspace as a zip archive to an open binary file, one of its files at a time.

    ``step`` is called with the number of rows written, and may raise to stop. Raises Invalid, Refused.
    """
    report = _write_zip(workspace, chosen_layout(workspace, layout), out, step)
    _record_export(workspace, report, by)
    return report


def _write_zip(workspace: Workspace, layout: str, out: IO[bytes], step: Step) -> ExportReport:
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:

        def add(file: OutFile) -> None:
            info = ZipInfo(file.path, FIRST_DAY)
            info.external_attr = 0o600 << 16
            info.compress_type = ZIP_DEFLATED
            with archive.open(info, "w") as packed:
                for chunk in file.chunks():
                    packed.write(chunk)

        return _write(workspace, layout, add, step)


def _write(workspace: Workspace, layout: str, add_file: Callable[[OutFile], None], step: Step) -> ExportReport:
    plan = plan_export(workspace, layout)
    if not plan.written:
        message = gettext("%(program)s can't store anything in this workspace. Choose another layout.")
        raise Refused(message % {"program": LABELS[layout]}, code="export_refused")
    written: Counter[str] = Counter()
    total = sum(part.count for part in plan.written)
    count = 0
    step(0, total, "")
    for file in write_folder(_snapshot(workspace, layout), layout, written):
        report_progress = partial(_report_progress, step, written, total, file.path)
        add_file(replace(file, parts=_reporting_parts(file.parts, report_progress)))
        report_progress()
        count += 1
    return ExportReport(plan, count, {kind: written[kind] for kind in KINDS if written[kind]})


def _report_progress(step: Step, written: Counter[str], total: int, path: str) -> None:
    step(min(written.total(), total), total, path)


def _reporting_parts(parts: Iterable[str], report_progress: Callable[[], None]) -> Iterator[str]:
    for part in parts:
        report_progress()
        yield part


def _snapshot(workspace: Workspace, layout: str) -> Snapshot:
    """Return the workspace's rows as records, read from the database as they are written."""
    return Snapshot(
        program=workspace.layout,
        program_version=workspace.layout_version,
        identity=_identity(workspace),
        created_at=workspace.created_at,
        keys=list(Session.objects.filter(workspace=workspace).values_list("key", flat=True)),
        sessions=all_sessions(workspace, layout),
        documents=document_records(workspace),
        history=history_records(workspace),
        history_extra=_history_extra(workspace),
        knowledge=knowledge_records(workspace),
        observations=observation_records(workspace),
        key_values=key_value_records(workspace),
        cached=cached_records(workspace),
        graph=graph_parts(workspace),
        graph_meta=graph_meta(workspace),
        graph_rows=graph_rows(workspace),
        settings={name: getattr(workspace, name) for name in SETTINGS},
        zone=ZoneInfo(settings.TIME_ZONE),
    )


def _history_extra(workspace: Workspace) -> dict[str, Any]:
    """Return what the latest history file has beside its entries."""
    rows = SourceFile.objects.filter(workspace=workspace, folder=None, kind="history")
    row = rows.order_by("-last_seen_at", "path").first()
    found = row.extra.get(HISTORY_EXTRA) if row else {}
    return found if isinstance(found, dict) else {}


def _identity(workspace: Workspace) -> str:
    """Return the id by which nanobot 0.3 finds a workspace's sessions: its own, or one derived from the slug."""
    paths = SourceFile.objects.filter(workspace=workspace, folder=None, kind="session").order_by("path")
    for path in paths.values_list("path", flat=True).iterator():
        if found := _IDENTITY.search(path):
            return found.group(1)
    return hashlib.sha256(f"memoryhub:{workspace.slug}".encode()).hexdigest()[:32]


def _free_path(dest: Path) -> Path:
    """Return the resolved target. Raises Refused if it exists, or belongs to an agent or the hub."""
    place = dest.expanduser().resolve()
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise Refused(
            f"{dest} already exists. Name a new or empty folder, or a new .zip file.", code="export_refused"
        )
    if place.exists() and place.suffix.lower() == ".zip":
        raise Refused(f"{dest} is a folder. Name a new .zip file.", code="export_refused")
    if not place.parent.is_dir():
        raise Refused(f"The folder {dest.parent} doesn't exist. Create it first.", code="export_refused")
    if place.is_relative_to(settings.MEMORYHUB_HOME.resolve()):
        raise Refused("This is MemoryHub's own data folder. Choose another one.", code="export_refused")
    for path in Workspace.objects.exclude(path="").values_list("path", flat=True):
        home = Path(path).resolve()
        if place.is_relative_to(home) or home.is_relative_to(place):
            raise Refused(
                f"{dest} is, contains or is in an agent's folder. Choose another one.",
                code="export_refused",
            )
    return place


@contextmanager
def _temporary_path(dest: Path, *, is_folder: bool) -> Iterator[Path]:
    """Yield a path in a temporary folder next to ``dest``, which is removed afterwards."""
    holder: Path | None = None
    try:
        holder = Path(tempfile.mkdtemp(prefix=".memoryhub-export-", dir=dest.parent))
        place = holder / "export"
        if is_folder:
            place.mkdir(mode=0o700)
        yield place
    except OSError as error:
        raise Refused(
            f"{dest} can't be written: {error.strerror}. No file was left behind.", code="export_refused"
        ) from error
    finally:
        if holder:
            shutil.rmtree(holder, ignore_errors=True)


def _write_file(folder: Path, file: OutFile) -> None:
    path = folder / file.path
    if ".." in Path(file.path).parts or not path.resolve().is_relative_to(folder.resolve()):
        raise Refused("A file's name leads outside the folder.", code="export_refused")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as out:
        for chunk in file.chunks():
            out.write(chunk)
        _flush(out)


def _flush(out: IO[bytes]) -> None:
    out.flush()
    os.fsync(out.fileno())


def _move_to(place: Path, dest: Path) -> None:
    """Move the export to its target in one step, never over something created there in the meantime."""
    if place.is_dir():
        for folder, _, _ in os.walk(place):
            Path(folder).chmod(0o700)
            _flush_folder(Path(folder))
        place.rename(dest)  # fails if dest is a file or a folder that isn't empty
    else:
        place.chmod(0o600)
        try:
            dest.hardlink_to(place)  # fails too if dest exists
        except PermissionError:  # a file system without hard links
            place.rename(dest)
    _flush_folder(dest.parent)


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _record_export(workspace: Workspace, report: ExportReport, by: By) -> None:
    record(
        by,
        "workspace.exported",
        "workspace",
        workspace.pk,
        f"Workspace exported for {LABELS[report.plan.layout]}: {report.files:,} files",
        workspace=workspace,
        detail={"layout": report.plan.layout, "files": report.files, "written": report.written},
    )
