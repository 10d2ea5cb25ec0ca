"""The folder of backups that the hub keeps by itself: what is in it, what is due, what goes.

The files are the truth. Beside them lies ``state.json``: what failed, and which files were checked. Making and
checking them are jobs, one at a time.
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
from memoryhub.backups.create import STAMP, Made, make_backup, only_backup, opened_backup
from memoryhub.backups.errors import BackupFailed
from memoryhub.jobs.kinds import Clock
from memoryhub.jobs.progress import Progress
from memoryhub.jobs.queue import LIVE, cancel_job, request_job
from memoryhub.lib import db_retry
from memoryhub.lib.errors import Conflict, MemoryHubError
from memoryhub.models import Job
from memoryhub.processes import this_home
from sessions_app.services.audit import Actor, By, record

NAME = re.compile(r"memoryhub-(\d{8}T\d{6}Z)(?:-(\d+))?\.(?:tar\.gz|sealed)")
SCHEDULE = Actor("run", "the schedule")
RETRY = timedelta(hours=1)  # after a scheduled backup that failed
KINDS = (Job.Kind.BACKUP, Job.Kind.BACKUP_CHECK)
KEY = "backup"  # of the jobs: one at a time
CANCELLABLE = ("", "copying", "packing")  # stages of a job; what is being read back is as good as made


@dataclass(frozen=True)
class Kept:
    """One backup of the folder; what isn't known of it is None, and ``fault`` says why."""

    name: str
    size: int
    taken_at: datetime
    rows: int | None
    is_sealed: bool
    checked_at: datetime | None
    fault: str


@dataclass(frozen=True)
class State:
    """Times are ISO 8601. ``checked``: by file, when, and what was wrong."""

    watched_since: str = ""
    failed_at: str = ""
    failure: str = ""
    checked: dict[str, list[str]] = field(default_factory=dict)


def backup_folder() -> Path:
    folder: Path = settings.MEMORYHUB_BACKUP_DIR
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def list_backups() -> list[Kept]:
    """Return the backups of the folder, the newest first; one that can't be read is among them, with its fault."""
    checked = read_state().checked
    found = [(match, file) for file in backup_folder().iterdir() if (match := NAME.fullmatch(file.name))]
    found.sort(key=lambda pair: (pair[0][1], int(pair[0][2] or 1)), reverse=True)
    return [_kept(file, match[1], *checked.get(file.name, ["", ""])) for match, file in found]


def find_backup(name: str) -> Path | None:
    """Return the file of a backup of the folder by its name, if there is one."""
    file = backup_folder() / name
    return file if NAME.fullmatch(name) and file.is_file() and not file.is_symlink() else None


def _kept(file: Path, stamp: str, checked_at: str, fault: str) -> Kept:
    summary: dict[str, Any] = {}
    try:
        summary = summary_of(file)
    except (BadBackup, OSError) as error:
        fault = error.message if isinstance(error, BadBackup) else _unread(error)
    taken_at = datetime.strptime(stamp, STAMP).replace(tzinfo=UTC)
    return Kept(
        file.name,
        file.stat().st_size,
        taken_at,
        rows if isinstance(rows := summary.get("rows"), int) else None,
        file.suffix == ".sealed",
        datetime.fromisoformat(checked_at) if checked_at else None,
        fault,
    )


def _unread(error: OSError) -> str:
    return gettext("It can't be read: %(reason)s.") % {"reason": error.strerror}


def make_kept_backup(*, actor: Actor, clock: Clock, stage: Callable[[str], None] = lambda _stage: None) -> Made:
    """Make a backup in the folder, and remove those beyond the number that is kept.

    ``stage`` hears "copying", "packing" and "checking"; what it raises ends the backup. A failure is kept for the
    page. Raises BackupFailed, BackupUnderWay.
    """
    with only_backup():
        for left in backup_folder().glob(".memoryhub-*.part"):  # by one that was killed
            left.unlink(missing_ok=True)
        try:
            made = make_backup(backup_folder(), database=connection, clock=clock, progress=stage)
        except BackupFailed as error:
            change_state(failed_at=_text(clock()), failure=error.message)
            raise
        change_state(failed_at="", failure="")
        record_backup(made, by=By(actor, clock()))
        for old in list_backups()[settings.MEMORYHUB_BACKUP_KEEP :] if settings.MEMORYHUB_BACKUP_KEEP > 0 else []:
            remove_backup(old.name, by=By(SCHEDULE, clock()))
        return made


def record_backup(made: Made, *, by: By) -> None:
    """Write the audit record of a backup that was made; one in the hub's own folder is known as checked there."""
    if made.file.parent.resolve() == backup_folder().resolve():
        change_state(checked=read_state().checked | {made.file.name: [_text(by.at), ""]})
    words = f"made a backup of {made.manifest.rows:,} rows{', encrypted' if made.is_sealed else ''}"
    _note(by, "made", made.file.name, words, detail={"digest": made.manifest.digest, "bytes": made.size})


def record_download(name: str, *, by: By) -> None:
    """Write the audit record of a backup that was taken out of the hub."""
    _note(by, "downloaded", name, "downloaded a backup of the whole hub")


def remove_backup(name: str, *, by: By) -> bool:
    """Delete a backup of the folder; tell whether it was there."""
    file = find_backup(name)
    if file is None:
        return False
    file.unlink(missing_ok=True)
    change_state(checked={key: value for key, value in read_state().checked.items() if key != name})
    _note(by, "deleted", name, "deleted a backup")
    return True


def check_kept_backup(name: str, *, now: datetime) -> str:
    """Check a backup of the folder, and keep the outcome for the page; return what is wrong, "" for nothing.

    Raises BackupUnderWay.
    """
    with only_backup():
        fault = _fault_of(backup_folder() / name)
        change_state(checked=read_state().checked | {name: [_text(now), fault]})
    return fault


def _fault_of(file: Path) -> str:
    try:
        with opened_backup(file, database=connection):
            return ""
    except MemoryHubError as error:
        return error.message


@db_retry.retried
def _note(by: By, verb: str, name: str, words: str, **values: Any) -> None:
    record(by, f"backup.{verb}", "backup", name[:64], words, **values)


def request_backup(*, by: By) -> bool:
    """Request a backup; tell whether it is a new request: one backup, or check, waits or runs at a time."""
    return request_job("backup", None, {}, by=by, key=KEY)[1]


def request_check(name: str, *, by: By) -> bool:
    """Request the check of a backup of this folder; tell whether it is a new request."""
    return request_job("backup_check", None, {"name": name}, by=by, key=KEY, home=this_home())[1]


def request_due_backup(now: datetime) -> None:
    """Request the backup that the schedule asks for."""
    if is_due(now) and current_job() is None:
        request_backup(by=By(SCHEDULE, now))


def current_job() -> Job | None:
    """Return the backup or check that waits or runs."""
    return Job.objects.filter(kind__in=KINDS, status__in=LIVE).order_by("status", "id").last()


def carry_out_backup(job: Job, progress: Progress, clock: Clock) -> dict[str, Any]:
    """Make the backup that a page or the schedule requested."""
    actor = SCHEDULE if job.requested_by == SCHEDULE.name else Actor("person", job.requested_by)
    if actor == SCHEDULE and not is_due(clock()):  # somebody else made one meanwhile
        return {}
    made = make_kept_backup(actor=actor, clock=clock, stage=lambda stage: progress.keep(stage=stage))
    return {"file": made.file.name, "home": this_home(), "bytes": made.size}


def carry_out_check(job: Job, progress: Progress, clock: Clock) -> dict[str, Any]:
    """Check the backup that a page named."""
    progress.keep(stage="checking")
    return {"fault": check_kept_backup(job.options["name"], now=clock())}


def is_cancellable(job: Job) -> bool:
    """Tell whether a backup that runs can be cancelled: not while it is read back."""
    return job.stage in CANCELLABLE


def is_due(now: datetime) -> bool:
    """Tell whether the schedule asks for a backup: so long after the latest one, or after the hub's first start."""
    hours = settings.MEMORYHUB_BACKUP_HOURS
    if hours <= 0:
        return False
    state = read_state()
    if not state.watched_since:
        change_state(watched_since=_text(now))
        return False
    if any(now < until for until in _rests(state)):
        return False
    return now - max([datetime.fromisoformat(state.watched_since), *_times_until(now)]) >= timedelta(hours=hours)


def next_due(now: datetime) -> datetime | None:
    """Return when the schedule makes the next backup; None where it is off."""
    if settings.MEMORYHUB_BACKUP_HOURS <= 0:
        return None
    state = read_state()
    times = [datetime.fromisoformat(text) for text in (state.watched_since,) if text]
    due = max([*times, *_times_until(now)], default=now) + timedelta(hours=settings.MEMORYHUB_BACKUP_HOURS)
    return max([due, *_rests(state)])


def _rests(state: State) -> list[datetime]:
    """Return until when the schedule rests: a while after a backup failed or was cancelled, on any machine."""
    failed = [datetime.fromisoformat(state.failed_at)] if state.failed_at else []
    last = Job.objects.filter(kind=Job.Kind.BACKUP).exclude(finished_at=None).order_by("-finished_at").first()
    if last is not None and last.finished_at and last.status != Job.Status.DONE:
        failed.append(last.finished_at)
    return [moment + RETRY for moment in failed]


def _times_until(now: datetime) -> list[datetime]:
    """Return when backups were made, here or by the worker of another machine.

    One of the future, made while the clock was wrong, puts off nothing.
    """
    made = Job.objects.filter(kind=Job.Kind.BACKUP, status=Job.Status.DONE, finished_at__lte=now)
    elsewhere = made.order_by("-finished_at").values_list("finished_at", flat=True)[:1]
    times = [kept.taken_at for kept in list_backups() if kept.taken_at <= now]
    return times + [moment for moment in elsewhere if moment is not None]


def cancel_backup(*, by: By) -> None:
    """Cancel the backup that waits, or the one that runs, after the step at hand. Raises Conflict."""
    job = current_job()
    try:
        if job is None:
            raise Conflict("There is no backup under way.")
        cancel_job(job, by=by)
    except Conflict:
        over = gettext("It is being checked, or over already: there is nothing to cancel.")
        raise Conflict(over, code="backup_is_over") from None


def read_state() -> State:
    """Return what is known beside the files; one that can't be read is as good as none."""
    try:
        values = json.loads((backup_folder() / "state.json").read_text())
        return State(**{name: values[name] for name in asdict(State()) if name in values})
    except (OSError, ValueError, TypeError):
        return State()


def change_state(**changes: Any) -> None:
    """Change what is known beside the files; readers see all of a change or nothing."""
    folder = backup_folder()
    with FileLock(folder / ".state.lock"):
        state = replace(read_state(), **changes)
        draft = folder / ".state.json.part"
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(asdict(state)))
        draft.replace(folder / "state.json")


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
