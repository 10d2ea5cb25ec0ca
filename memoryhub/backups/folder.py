"""The folder of backups that the hub keeps by itself: what is in it, what is due, what goes.

The files are the truth. Beside them lies ``state.json``: what is asked for or failed, and which files were checked.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

from django.conf import settings
from django.db import close_old_connections, connection
from django.utils import timezone
from django.utils.translation import gettext
from filelock import FileLock, Timeout

from memoryhub.backups.archive import BadBackup, summary_of
from memoryhub.backups.create import STAMP, Made, make_backup, only_backup, opened_backup
from memoryhub.backups.errors import BackupCancelled, BackupFailed, BackupUnderWay
from memoryhub.lib import db_retry
from memoryhub.lib.errors import Conflict, MemoryHubError
from sessions_app.services.audit import Actor, By, record

logger = logging.getLogger(__name__)
NAME = re.compile(r"memoryhub-(\d{8}T\d{6}Z)(?:-(\d+))?\.(?:tar\.gz|sealed)")
SCHEDULE = Actor("run", "the schedule")
LOOKS_EVERY = 60.0  # seconds
RETRY = timedelta(hours=1)  # after a scheduled backup that failed
LONGEST_WAIT = timedelta(minutes=10)  # for a worker to take up what a page asked for
CANCELLABLE = ("waiting", "copying", "packing")  # steps; what is being read back is as good as made


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
    """Times are ISO 8601. ``step``: of the backup under way. ``checked``: by file, when, and what was wrong.

    ``wanted_at``: of a wish that waits; ``cancelled_wish``: of the last that was cancelled while it waited.
    ``cancel_asked_at``: of the backup under way; ``put_off_at``: when one ended by that.
    """

    watched_since: str = ""
    wanted_at: str = ""
    step: str = ""
    cancelled_wish: str = ""
    cancel_asked_at: str = ""
    put_off_at: str = ""
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


def make_kept_backup(*, actor: Actor, clock: Callable[[], datetime], only_if_due: bool = False) -> Made | None:
    """Make a backup in the folder, and remove those beyond the number that is kept.

    None where none was due, or it was cancelled, which puts the schedule off as a failure does.
    A failure is kept for the page. Raises BackupFailed, BackupUnderWay.
    """
    try:
        with only_backup():
            if only_if_due and not is_due(clock()):
                return None
            return _make_kept(actor, clock)
    except BackupUnderWay:
        change_state(wanted_at="")
        raise


def _make_kept(actor: Actor, clock: Callable[[], datetime]) -> Made | None:
    for left in backup_folder().glob(".memoryhub-*.part"):  # by one that was killed
        left.unlink(missing_ok=True)
    change_state(cancel_asked_at="")  # it was of another one
    try:
        made = make_backup(backup_folder(), database=connection, clock=clock, progress=_note_step)
    except BackupCancelled:
        change_state(wanted_at="", step="", put_off_at=_text(clock()))
        return None
    except BackupFailed as error:
        change_state(wanted_at="", step="", failed_at=_text(clock()), failure=error.message)
        raise
    change_state(wanted_at="", step="", failed_at="", failure="")
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
    try:
        with only_backup():
            change_state(wanted_at="", step="checking")
            fault = _fault_of(backup_folder() / name)
            change_state(step="", checked=read_state().checked | {name: [_text(now), fault]})
    except BackupUnderWay:
        change_state(wanted_at="")
        raise
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


def keep_backups(stopping: Event) -> None:
    """Make backups when they are due, until told to stop. What failed is tried again an hour later."""
    while not stopping.wait(LOOKS_EVERY):
        close_old_connections()
        try:
            if is_due(timezone.now()):
                make_kept_backup(actor=SCHEDULE, clock=timezone.now, only_if_due=True)
        except BackupUnderWay:
            pass
        except BackupFailed as error:
            logger.error("the scheduled backup failed: %s", error.message)
        except Exception:
            logger.exception("the scheduled backup failed")
    connection.close()


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
    """Return until when the schedule rests: a while after a failure, and after one was cancelled."""
    return [datetime.fromisoformat(text) + RETRY for text in (state.failed_at, state.put_off_at) if text]


def _times_until(now: datetime) -> list[datetime]:
    """Return when backups were made; one of the future, made while the clock was wrong, puts off nothing."""
    return [kept.taken_at for kept in list_backups() if kept.taken_at <= now]


def want(now: datetime) -> str:
    """Keep that a person asked for a backup, or a check, so that the page says so until the worker takes it up.

    Return the wish's time, by which the worker asks whether it was cancelled.
    """
    wish = now.astimezone(UTC).isoformat()
    change_state(wanted_at=wish)
    return wish


def is_cancelled(wish: str) -> bool:
    """Tell whether a wish was cancelled while it waited."""
    return bool(wish) and read_state().cancelled_wish == wish


def cancel_backup(*, by: By) -> None:
    """Let the backup that waits not begin, or the one under way end after the step at hand. Raises Conflict."""
    step, state = step_under_way(by.at), read_state()
    if step not in CANCELLABLE:
        raise Conflict(
            gettext("It is being checked, or over already: there is nothing to cancel."), code="backup_is_over"
        )
    if step == "waiting":
        change_state(wanted_at="", cancelled_wish=state.wanted_at)
    elif not state.cancel_asked_at:
        change_state(cancel_asked_at=_text(by.at))
    else:
        return
    _note(by, "cancelled", "", "asked to cancel a backup, or the check of one")


def step_under_way(now: datetime) -> str:
    """Return what the hub is at: "waiting", "copying", "packing" or "checking"; "" for nothing.

    A step whose worker was killed is nothing, for nobody holds the lock; so is a wish that no worker took up.
    """
    state = read_state()
    if state.wanted_at and now - datetime.fromisoformat(state.wanted_at) < LONGEST_WAIT:
        return "waiting"
    if not state.step:
        return ""
    try:
        with FileLock(settings.MEMORYHUB_HOME / "locks" / "backup.lock", timeout=0):
            return ""
    except Timeout:
        return state.step


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


def _note_step(step: str) -> None:
    if read_state().cancel_asked_at:
        raise BackupCancelled("It was cancelled.")
    change_state(wanted_at="", step=step)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
