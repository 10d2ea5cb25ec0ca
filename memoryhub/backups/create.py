"""Making a backup while the hub runs, and checking one: copied, packed, read back and compared."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.utils.crypto import salted_hmac
from filelock import FileLock, Timeout

from memoryhub.backups import postgres, sqlite
from memoryhub.backups.archive import (
    DATABASES,
    FORMAT,
    SECRET_KEY,
    BadBackup,
    Content,
    Manifest,
    content_of,
    digest_of,
    unpack_backup,
    write_backup_file,
)
from memoryhub.backups.errors import BackupFailed, BackupUnderWay
from memoryhub.backups.in_use_lock import database_words

STAMP = "%Y%m%dT%H%M%SZ"
SHORTEST_KEY = 12  # characters
ROOM = 1.1  # of the database's size, for its copy
WORK = "backup-work-"  # folders in the hub's home; what a killed backup left in one goes with the next
PATIENCE = 2.0  # seconds that another one may need to look whether a backup is under way


@dataclass(frozen=True)
class Made:
    """A backup that was written and checked."""

    file: Path
    manifest: Manifest
    is_sealed: bool
    size: int


@contextmanager
def only_backup() -> Iterator[None]:
    """Let one backup at a time be made by this hub, whoever asks for it. Raises BackupUnderWay."""
    locks: Path = settings.MEMORYHUB_HOME / "locks"
    locks.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with FileLock(locks / "backup.lock", timeout=PATIENCE):
            yield
    except Timeout:
        raise BackupUnderWay("A backup is being made at this moment: wait for its end.") from None


def make_backup(
    dest: Path,
    *,
    database: BaseDatabaseWrapper,
    clock: Callable[[], datetime],
    progress: Callable[[str], None] = lambda _step: None,
) -> Made:
    """Write a backup of the whole database to a file, or under a name of its own into a folder; the hub may run.

    It takes its name only when it was read back whole, found sound by the database's own checks, and holds the very
    rows that were copied. It is encrypted where MEMORYHUB_BACKUP_KEY is set. The caller holds ``only_backup``.
    ``progress`` hears "copying", "packing" and "checking"; what it raises ends the backup, and nothing of it is left.
    Raises BackupFailed.
    """
    key = _key()
    taken_at = clock().astimezone(UTC)
    try:
        place = _free_place(dest, taken_at, is_sealed=bool(key))
        with _workshop() as work:
            progress("copying")
            file, tables = _copy(database, work)
            manifest, files = _describe(database, file, tables, taken_at, clock().astimezone(UTC))
            part = place.with_name(f".{place.name}.part")
            try:
                progress("packing")
                _write(part, manifest, files, key)
                file.unlink()
                progress("checking")
                with opened_backup(part, database=database) as (read, _):
                    if read != manifest:
                        raise BackupFailed("What was read back is not what was written: is the disk sound?")
                part.rename(place)
                sqlite.settle_folder(place.parent)
            finally:
                part.unlink(missing_ok=True)
    except BadBackup as error:
        raise BackupFailed(f"The backup that was written fails its check. {error.message}") from error
    except (OSError, sqlite3.Error, DatabaseError) as error:
        words = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
        raise BackupFailed(f"No backup was made: {words}.") from error
    return Made(place, manifest, bool(key), place.stat().st_size)


@contextmanager
def opened_backup(
    file: Path,
    *,
    database: BaseDatabaseWrapper,
    near: Path | None = None,
    refuse: Callable[[Manifest], None] = lambda _manifest: None,
) -> Iterator[tuple[Manifest, Path]]:
    """Unpack a backup for the length of the block, once all of it passed its check.

    Checked are every byte, the database's own integrity, and rows and hash of every table. PostgreSQL's rows can be
    compared after a restore only; here its dump is listed. ``near``: in this folder. ``refuse`` may raise over a
    manifest before the database is looked into. The caller holds ``only_backup``. Raises BadBackup, Invalid,
    BackupFailed.
    """
    if not file.is_file():
        raise BadBackup(f"There is no file {file}.")
    with tempfile.TemporaryDirectory(prefix=WORK, dir=near or settings.MEMORYHUB_HOME) as folder:
        try:
            manifest = unpack_backup(file, settings.MEMORYHUB_BACKUP_KEY, Path(folder))
        except OSError as error:
            raise BadBackup(f"It can't be read, or not be unpacked into {folder}: {error.strerror}.") from error
        refuse(manifest)
        copy = Path(folder, DATABASES[manifest.vendor])
        if manifest.vendor == "sqlite":
            sqlite.check_copy(copy)
            if sqlite.contents(copy) != manifest.tables:
                raise BadBackup("The database in it doesn't hold the rows that its manifest counts.")
        else:
            postgres.check_dump(database, copy, manifest.tables)
        yield manifest, Path(folder)


def key_check() -> str:
    """Return a few digits that tell whether two hubs have the same secret key, and next to nothing of it."""
    return salted_hmac("memoryhub.backup", "secret key", algorithm="sha256").hexdigest()[:8]


def key_file() -> Path | None:
    """Return the file that holds the hub's secret key; None where the key is set from outside."""
    file: Path = settings.MEMORYHUB_HOME / "secret_key"
    return file if file.exists() and file.read_text().strip() == settings.SECRET_KEY else None


def _key() -> str:
    key: str = settings.MEMORYHUB_BACKUP_KEY
    if key and len(key) < SHORTEST_KEY:
        raise BackupFailed(f"MEMORYHUB_BACKUP_KEY is too short: it takes {SHORTEST_KEY} characters or more.")
    return key


def _free_place(dest: Path, taken_at: datetime, *, is_sealed: bool) -> Path:
    if not (dest.is_dir() or dest.suffix == ""):
        if dest.exists():
            raise BackupFailed(f"{dest} is there already: name another file.")
        return dest
    dest.mkdir(parents=True, exist_ok=True, mode=0o700)
    name, ending = f"memoryhub-{taken_at:{STAMP}}", "sealed" if is_sealed else "tar.gz"
    places = [dest / f"{name}.{ending}", *(dest / f"{name}-{number}.{ending}" for number in range(2, 100))]
    return next(place for place in places if not place.exists())


@contextmanager
def _workshop() -> Iterator[Path]:
    for left in settings.MEMORYHUB_HOME.glob(f"{WORK}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=WORK, dir=settings.MEMORYHUB_HOME) as work:
        yield Path(work)


def _copy(database: BaseDatabaseWrapper, work: Path) -> tuple[Path, dict[str, Content]]:
    file = work / DATABASES[database.vendor]
    if database.vendor == "sqlite":
        source = Path(database.settings_dict["NAME"])
        if not source.exists():
            raise BackupFailed(f"There is no database {source}: is MEMORYHUB_HOME that of the hub?")
        _make_sure_of_room(source.stat().st_size)
        sqlite.copy_database(source, file)
        return file, sqlite.contents(file)
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        _make_sure_of_room(cursor.fetchone()[0])
    return file, postgres.dump_database(database, file)


def _make_sure_of_room(size: int) -> None:
    free = shutil.disk_usage(settings.MEMORYHUB_HOME).free
    if free < size * ROOM:
        needed = f"{size * ROOM / 1e6:,.0f} MB"
        raise BackupFailed(f"The disk is too full: copying takes {needed}, and {free / 1e6:,.0f} MB are free.")


def _describe(
    database: BaseDatabaseWrapper, file: Path, tables: dict[str, Content], taken_at: datetime, ended_at: datetime
) -> tuple[Manifest, Mapping[str, Path]]:
    files = {file.name: file}
    held = key_file()
    if held and settings.MEMORYHUB_BACKUP_KEY:
        files[SECRET_KEY] = held
    applied = MigrationRecorder(database).applied_migrations()
    manifest = Manifest(
        format=FORMAT,
        hub=hub_version(),
        vendor=database.vendor,
        database=database_words(database),
        taken_at=taken_at.isoformat(timespec="seconds"),
        ended_at=ended_at.isoformat(timespec="seconds"),
        migrations=sorted(f"{app}.{name}" for app, name in applied),
        tables=tables,
        digest=digest_of(tables),
        secret_key="inside" if SECRET_KEY in files else "left out" if held else "set outside",
        key_check=key_check(),
        members={name: content_of(member) for name, member in files.items()},
    )
    return manifest, files


def hub_version() -> str:
    with suppress(OSError, KeyError):
        values = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
        return str(values["project"]["version"])
    return "unknown"


def _write(part: Path, manifest: Manifest, files: Mapping[str, Path], key: str) -> None:
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out:
        write_backup_file(out, manifest, files, key)
        out.flush()
        os.fsync(out.fileno())
