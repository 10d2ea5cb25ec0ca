"""The hub's backup folder: its files, the schedule and the jobs that create and verify them.

``state.json`` in the folder records failures and which files were verified.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils.translation import gettext
from filelock import FileLock

from memoryhub.backups.archive import BadBackup, summary_of
from memoryhub.backups.create import STAMP, CreatedBackup, backup_lock, create_backup, verified_backup
from memoryhub.backups.errors import BackupFailed
from memoryhub.jobs.kinds import Clock
from memoryhub.jobs.progress import Progress
from memoryhub.jobs.queue import LIVE, cancel_job, request_job
from memoryhub.lib import db_retry
from memoryhub.lib.errors import Conflict, MemoryHubError
from memoryhub.models import Job
from memoryhub.processes import this_home
from sessions_app.services.audit import Actor, By, record
from sessions_app.services.stored_settings import hub_settings

NAME = re.compile(r"memoryhub-(\d{8}T\d{6}Z)(?:-(\d+))?\.(?:tar\.gz|sealed)")
SCHEDULE = Actor("run", "the schedule")
RETRY = timedelta(hours=1)  # after a scheduled backup failed
KINDS = (Job.Kind.BACKUP, Job.Kind.BACKUP_CHECK)
KEY = "backup"  # unique key of the jobs, so only one of them is live
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


def backup_folder() -> Path:
    folder: Path = settings.MEMORYHUB_BACKUP_DIR
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def list_backups() -> list[ListedBackup]:
    """Return the backups in the folder, newest first, including unreadable ones."""
    checked = read_state().checked
    found = [(match, file) for file in backup_folder().iterdir() if (match := NAME.fullmatch(file.name))]
    found.sort(key=lambda pair: (pair[0][1], int(pair[0][2] or 1)), reverse=True)
    return [_listed(file, match[1], *checked.get(file.name, ["", ""])) for match, file in found]


def find_backup(name: str) -> Path | None:
    """Return the path of a backup in the folder; None if it doesn't exist."""
    file = backup_folder() / name
    return file if NAME.fullmatch(name) and file.is_file() and not file.is_symlink() else None


def _listed(file: Path, stamp: str, checked_at: str, fault: str) -> ListedBackup:
    summary: dict[str, Any] = {}
    try:
        summary = summary_of(file)
    except (BadBackup, OSError) as error:
        fault = error.message if isinstance(error, BadBackup) else _unreadable(error)
    taken_at = datetime.strptime(stamp, STAMP).replace(tzinfo=UTC)
    return ListedBackup(
        file.name,
        file.stat().st_size,
        taken_at,
        rows if isinstance(rows := summary.get("rows"), int) else None,
        file.suffix == ".sealed",
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
        for leftover in backup_folder().glob(".memoryhub-*.part"):  # of a killed backup
            leftover.unlink(missing_ok=True)
        try:
            created = create_backup(backup_folder(), database=connection, clock=clock, progress=stage)
        except BackupFailed as error:
            update_state(failed_at=_iso(clock()), failure=error.message)
            raise
        update_state(failed_at="", failure="")
        record_backup(created, by=By(actor, clock()))
        keep = hub_settings().values["MEMORYHUB_BACKUP_KEEP"]
        for old in list_backups()[keep:] if keep > 0 else []:
            remove_backup(old.name, by=By(SCHEDULE, clock()))
        return created


def record_backup(created: CreatedBackup, *, by: By) -> None:
    """Write the audit record of a new backup; in the hub's own folder, also mark it as verified."""
    if created.file.parent.resolve() == backup_folder().resolve():
        update_state(checked=read_state().checked | {created.file.name: [_iso(by.at), ""]})
    words = f"created {'an encrypted' if created.is_encrypted else 'a'} backup of {created.manifest.rows:,} rows"
    _audit(by, "made", created.file.name, words, detail={"digest": created.manifest.digest, "bytes": created.size})


def record_download(name: str, *, by: By) -> None:
    """Write the audit record of a downloaded backup."""
    _audit(by, "downloaded", name, "downloaded a backup of the whole hub")


def remove_backup(name: str, *, by: By) -> bool:
    """Delete a backup in the folder; return whether it existed."""
    file = find_backup(name)
    if file is None:
        return False
    file.unlink(missing_ok=True)
    update_state(checked={key: value for key, value in read_state().checked.items() if key != name})
    _audit(by, "deleted", name, "deleted a backup")
    return True


def verify_in_folder(name: str, *, now: datetime) -> str:
    """Verify a backup in the folder; record and return its fault, "" if there is none. Raises BackupUnderWay."""
    with backup_lock():
        fault = _verify(backup_folder() / name)
        update_state(checked=read_state().checked | {name: [_iso(now), fault]})
    return fault


def _verify(file: Path) -> str:
    try:
        with verified_backup(file, database=connection):
            return ""
    except MemoryHubError as error:
        return error.message


@db_retry.retried
def _audit(by: By, verb: str, name: str, words: str, **values: Any) -> None:
    record(by, f"backup.{verb}", "backup", name[:64], words, **values)


def request_backup(*, by: By) -> bool:
    """Request a backup; return False if a backup or check is already queued or running."""
    return request_job("backup", None, {}, by=by, key=KEY)[1]


def request_check(name: str, *, by: By) -> bool:
    """Request the check of a backup; return False if a backup or check is already queued or running."""
    return request_job("backup_check", None, {"name": name}, by=by, key=KEY, home=this_home())[1]


def request_due_backup(now: datetime) -> None:
    """Request a backup if one is due."""
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
    if not state.watched_since:
        update_state(watched_since=_iso(now))
        return False
    if any(now < until for until in _retry_times(state)):
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
        values = json.loads((backup_folder() / "state.json").read_text())
        return State(**{name: values[name] for name in asdict(State()) if name in values})
    except (OSError, ValueError, TypeError):
        return State()


def update_state(**changes: Any) -> None:
    """Change fields of the recorded state atomically."""
    folder = backup_folder()
    with FileLock(folder / ".state.lock", mode=0o600):
        state = replace(read_state(), **changes)
        draft = folder / ".state.json.part"
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(asdict(state)))
        draft.replace(folder / "state.json")


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
