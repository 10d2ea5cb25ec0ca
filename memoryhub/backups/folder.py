"""The hub's backup folder or bucket: its files, the schedule and the jobs that create and verify them.

``state.json`` in it records failures and which files were verified.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.db import connection
from django.utils.translation import gettext

from memoryhub.backups.archive import BadBackup, summary_of
from memoryhub.backups.create import (
    STAMP,
    WORK,
    CreatedBackup,
    backup_lock,
    create_backup,
    verified_backup,
    work_lock,
)
from memoryhub.backups.errors import BackupFailed
from memoryhub.jobs.kinds import Clock
from memoryhub.jobs.progress import Progress
from memoryhub.jobs.queue import LIVE, cancel_job, request_job
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Busy, Conflict, MemoryHubError
from memoryhub.lib.files.private_files import CHUNK_BYTES, local_file, local_path
from memoryhub.lib.process_locks import process_lock
from memoryhub.models import Job
from memoryhub.processes import this_home
from sessions_app.services.audit import Actor, By, record
from sessions_app.services.stored_settings import hub_settings

NAME = re.compile(r"memoryhub-(\d{8}T\d{6}Z)(?:-(\d+))?\.(?:tar\.gz|sealed)")
SCHEDULE = Actor("run", "the schedule")
RETRY = timedelta(hours=1)  # after a scheduled backup failed
KINDS = (Job.Kind.BACKUP, Job.Kind.BACKUP_CHECK)
KEY = "backup"  # unique key of the jobs, so only one of them is live
OUTGOING = "backup-new-"  # prefix of temporary folders
STATE = "state.json"
STATE_SECONDS = 10.0  # to wait for another change of the state
CANCELLABLE = ("", "copying", "packing")  # stages of a job; one that is being verified is almost done


@dataclass(frozen=True)
class ListedBackup:
    """A backup in the folder; unknown values are None, and ``fault`` says why."""

    name: str
    size: int
    taken_at: datetime
    rows: int | None
    is_encrypted: bool
    checked_at: datetime | None
    fault: str


@dataclass(frozen=True)
class State:
    """Times are ISO 8601. ``checked``: by file name, the time and the fault."""

    watched_since: str = ""
    failed_at: str = ""
    failure: str = ""
    checked: dict[str, list[str]] = field(default_factory=dict)


def storage() -> Storage:
    """Return the storage of backups."""
    return storages["backups"]


def backup_folder() -> Path | None:
    """Return the folder of backups, and create it; None if they are in a bucket."""
    folder = local_path(storage(), "")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def is_shared() -> bool:
    """Return whether backups are where all machines can read them."""
    folder = backup_folder()
    return bool(settings.MEMORYHUB_FILES) and (folder is None or folder.is_relative_to(settings.MEMORYHUB_FILES))


def list_backups() -> list[ListedBackup]:
    """Return the backups in the folder, newest first, including unreadable ones."""
    checked = read_state().checked
    found = [match for name in storage().listdir("")[1] if (match := NAME.fullmatch(name))]
    found.sort(key=lambda match: (match[1], int(match[2] or 1)), reverse=True)
    return [_listed(match[0], match[1], *checked.get(match[0], ["", ""])) for match in found]


def find_backup(name: str) -> str:
    """Return the name of a backup in the folder; "" if it doesn't exist."""
    return name if NAME.fullmatch(name) and storage().exists(name) else ""


def _listed(name: str, stamp: str, checked_at: str, fault: str) -> ListedBackup:
    summary: dict[str, Any] = {}
    size = 0
    try:
        size = storage().size(name)
        file = local_path(storage(), name)
        summary = summary_of(file) if file else {}  # in a bucket, it would have to be downloaded
    except (BadBackup, OSError) as error:
        fault = error.message if isinstance(error, BadBackup) else _unreadable(error)
    taken_at = datetime.strptime(stamp, STAMP).replace(tzinfo=UTC)
    return ListedBackup(
        name,
        size,
        taken_at,
        rows if isinstance(rows := summary.get("rows"), int) else None,
        name.endswith(".sealed"),
        datetime.fromisoformat(checked_at) if checked_at else None,
        fault,
    )


def _unreadable(error: OSError) -> str:
    return gettext("The file can't be read: %(reason)s.") % {"reason": error.strerror}


def create_in_folder(
    *, actor: Actor, clock: Clock, stage: Callable[[str], None] = lambda _stage: None
) -> CreatedBackup:
    """Create a backup in the folder, and delete the oldest beyond MEMORYHUB_BACKUP_KEEP.

    ``stage``: see ``create_backup``. A failure is recorded in the state. Raises BackupFailed, BackupUnderWay.
    """
    with backup_lock():
        try:
            created = create_in_storage(clock=clock, stage=stage)
        except BackupFailed as error:
            update_state(failed_at=_iso(clock()), failure=error.message)
            raise
        update_state(failed_at="", failure="")
        record_backup(created, by=By(actor, clock()))
        keep = hub_settings().values["MEMORYHUB_BACKUP_KEEP"]
        for old in list_backups()[keep:] if keep > 0 else []:
            remove_backup(old.name, by=By(SCHEDULE, clock()))
        return created


def create_in_storage(*, clock: Clock, stage: Callable[[str], None] = lambda _stage: None) -> CreatedBackup:
    """Create a backup in the folder or bucket; in a bucket, ``file`` of the result is only a name.

    The caller holds ``backup_lock``. Raises BackupFailed.
    """
    options: dict[str, Any] = {"database": connection, "clock": clock, "progress": stage}
    folder = backup_folder()
    if folder is not None:
        for leftover in folder.glob(".memoryhub-*.part"):  # of a killed backup
            leftover.unlink(missing_ok=True)
        return create_backup(folder, **options)
    for old in settings.MEMORYHUB_HOME.glob(f"{OUTGOING}*"):
        shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=OUTGOING, dir=settings.MEMORYHUB_HOME) as work:
        created = create_backup(Path(work), **options)
        name = created.file.name
        if storage().exists(name):
            raise BackupFailed(f"{name} already exists.")
        with created.file.open("rb") as source:
            storage().save(name, File(source))
        with storage().open(name) as stored, created.file.open("rb") as source:
            is_same = _digest(stored) == _digest(source)
        if not is_same:
            storage().delete(name)
            raise BackupFailed("The backup read back differs from what was written.")
    return replace(created, file=Path(name))


def _digest(opened: IO[bytes] | File[Any]) -> str:
    digest = hashlib.sha256()
    while chunk := opened.read(CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def record_backup(created: CreatedBackup, *, by: By) -> None:
    """Write the audit record of a new backup; if it is listed, also mark it as verified."""
    folder = backup_folder()
    if created.file.parent.resolve() == folder.resolve() if folder else find_backup(created.file.name):
        update_state(checked=read_state().checked | {created.file.name: [_iso(by.at), ""]})
    words = f"created {'an encrypted' if created.is_encrypted else 'a'} backup of {created.manifest.rows:,} rows"
    _audit(by, "made", created.file.name, words, detail={"digest": created.manifest.digest, "bytes": created.size})


def record_download(name: str, *, by: By) -> None:
    """Write the audit record of a downloaded backup."""
    _audit(by, "downloaded", name, "downloaded a backup of the whole hub")


def remove_backup(name: str, *, by: By) -> bool:
    """Delete a backup in the folder; return whether it existed."""
    if not find_backup(name):
        return False
    storage().delete(name)
    update_state(checked={key: value for key, value in read_state().checked.items() if key != name})
    _audit(by, "deleted", name, "deleted a backup")
    return True


def verify_in_folder(name: str, *, now: datetime) -> str:
    """Verify a backup in the folder; record and return its fault, "" if there is none. Raises BackupUnderWay."""
    with work_lock():
        fault = _verify(name)
        update_state(checked=read_state().checked | {name: [_iso(now), fault]})
    return fault


def _verify(name: str) -> str:
    try:
        copied = local_file(storage(), name, prefix=WORK, parent=settings.MEMORYHUB_HOME)
        with copied as file, verified_backup(file, database=connection):
            return ""
    except MemoryHubError as error:
        return error.message
    except FileNotFoundError as error:
        return _unreadable(error)


@db_retry.retried
def _audit(by: By, verb: str, name: str, words: str, **values: Any) -> None:
    record(by, f"backup.{verb}", "backup", name[:64], words, **values)


def request_backup(*, by: By) -> bool:
    """Request a backup; return False if a backup or check is already queued or running."""
    return request_job("backup", None, {}, by=by, key=KEY)[1]


def request_check(name: str, *, by: By) -> bool:
    """Request the check of a backup; return False if a backup or check is already queued or running."""
    return request_job("backup_check", None, {"name": name}, by=by, key=KEY, home="" if is_shared() else this_home())[
        1
    ]


def request_due_backup(now: datetime) -> None:
    if is_due(now) and current_job() is None:
        request_backup(by=By(SCHEDULE, now))


def current_job() -> Job | None:
    """Return the queued or running backup or check."""
    return Job.objects.filter(kind__in=KINDS, status__in=LIVE).order_by("status", "id").last()


def carry_out_backup(job: Job, progress: Progress, clock: Clock) -> dict[str, Any]:
    """Create the requested backup. Job handler."""
    actor = SCHEDULE if job.requested_by == SCHEDULE.name else Actor("person", job.requested_by)
    if actor == SCHEDULE and not is_due(clock()):  # another one was created meanwhile
        return {}
    created = create_in_folder(actor=actor, clock=clock, stage=lambda stage: progress.save(stage=stage))
    return {"file": created.file.name, "home": this_home(), "bytes": created.size}


def carry_out_check(job: Job, progress: Progress, clock: Clock) -> dict[str, Any]:
    """Verify the requested backup. Job handler."""
    progress.save(stage="checking")
    return {"fault": verify_in_folder(job.options["name"], now=clock())}


def is_cancellable(job: Job) -> bool:
    """Return whether a running backup can still be cancelled."""
    return job.stage in CANCELLABLE


def is_due(now: datetime) -> bool:
    """Return whether MEMORYHUB_BACKUP_HOURS have passed since the latest backup or the hub's first start."""
    hours = hub_settings().values["MEMORYHUB_BACKUP_HOURS"]
    if hours <= 0:
        return False
    state = read_state()
    if not state.watched_since or datetime.fromisoformat(state.watched_since) > now:  # from a wrong clock
        update_state(watched_since=_iso(now))
        return False
    if any(now < until <= now + RETRY for until in _retry_times(state)):
        return False
    return now - max([datetime.fromisoformat(state.watched_since), *_backup_times(now)]) >= timedelta(hours=hours)


def next_due(now: datetime) -> datetime | None:
    """Return when the next scheduled backup is due; None if the schedule is off."""
    hours = hub_settings().values["MEMORYHUB_BACKUP_HOURS"]
    if hours <= 0:
        return None
    state = read_state()
    times = [datetime.fromisoformat(text) for text in (state.watched_since,) if text]
    due = max([*times, *_backup_times(now)], default=now) + timedelta(hours=hours)
    return max([due, *_retry_times(state)])


def _retry_times(state: State) -> list[datetime]:
    """Return the times before which the schedule doesn't retry a failed or cancelled backup."""
    failed = [datetime.fromisoformat(state.failed_at)] if state.failed_at else []
    last = Job.objects.filter(kind=Job.Kind.BACKUP).exclude(finished_at=None).order_by("-finished_at").first()
    if last is not None and last.finished_at and last.status != Job.Status.DONE:
        failed.append(last.finished_at)
    return [moment + RETRY for moment in failed]


def _backup_times(now: datetime) -> list[datetime]:
    """Return when backups were created, here or on another machine.

    Times in the future, from a wrong clock, are ignored.
    """
    created = Job.objects.filter(kind=Job.Kind.BACKUP, status=Job.Status.DONE, finished_at__lte=now)
    elsewhere = created.order_by("-finished_at").values_list("finished_at", flat=True)[:1]
    times = [kept.taken_at for kept in list_backups() if kept.taken_at <= now]
    return times + [moment for moment in elsewhere if moment is not None]


def cancel_backup(*, by: By) -> None:
    """Cancel the queued backup, or the running one after its current step. Raises Conflict."""
    job = current_job()
    try:
        if job is None:
            raise Conflict("No backup is running.")
        cancel_job(job, by=by)
    except Conflict:
        message = gettext("The backup is already being verified or has finished.")
        raise Conflict(message, code="backup_is_over") from None


def read_state() -> State:
    """Return the recorded state; the default one if it can't be read."""
    try:
        with storage().open(STATE) as file:
            values = json.loads(file.read())
        return State(**{name: values[name] for name in asdict(State()) if name in values})
    except (OSError, ValueError, TypeError):
        return State()


def update_state(**changes: Any) -> None:
    """Change fields of the recorded state atomically. Raises Busy."""
    with process_lock("backup-state", timeout=STATE_SECONDS) as is_acquired:
        if not is_acquired:
            raise Busy("The state of backups is being changed. Try again.", code="backup_state_busy")
        state = replace(read_state(), **changes)
        storage().save(STATE, ContentFile(json.dumps(asdict(state)).encode()))


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
