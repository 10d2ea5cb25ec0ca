"""Create a backup while the hub runs, and verify one."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.utils.crypto import constant_time_compare, salted_hmac

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
    manifest_mac,
    unpack_backup,
    write_backup_file,
)
from memoryhub.backups.errors import BackupFailed, BackupUnderWay
from memoryhub.backups.in_use_lock import database_label
from memoryhub.backups.schema import check_schema
from memoryhub.lib.database.direct_connection import direct_connection
from memoryhub.lib.process_locks import acquire_file_lock, process_lock

STAMP = "%Y%m%dT%H%M%SZ"
MIN_KEY_LENGTH = 12
ROOM = 1.1  # free space needed for a copy, relative to the database's size
WORK = "backup-work-"  # prefix of temporary folders; the next backup removes those of a killed one
LOCK_SECONDS = 2.0  # to wait for a process that only tests the lock
UNDER_WAY = "Another backup is running. Try again when it has finished."


@dataclass(frozen=True)
class CreatedBackup:
    """A backup that was written and verified."""

    file: Path
    manifest: Manifest
    is_encrypted: bool
    size: int


@contextmanager
def work_lock() -> Iterator[None]:
    """Hold the lock of the temporary folders in this hub's home. Raises BackupUnderWay."""
    lock = acquire_file_lock("backup", timeout=LOCK_SECONDS)
    if lock is None:
        raise BackupUnderWay(UNDER_WAY)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def backup_lock() -> Iterator[None]:
    """Hold the lock that lets all hubs of a database create one backup at a time. Raises BackupUnderWay."""
    with work_lock(), process_lock("backups", timeout=LOCK_SECONDS) as is_acquired:
        if not is_acquired:
            raise BackupUnderWay(UNDER_WAY)
        yield


def create_backup(
    dest: Path,
    *,
    database: BaseDatabaseWrapper,
    clock: Callable[[], datetime],
    progress: Callable[[str], None] = lambda _step: None,
) -> CreatedBackup:
    """Write a backup to a file, or to a new file in a folder, and verify it. The hub may run.

    The file gets its name only after it was read back and verified. It is encrypted if MEMORYHUB_BACKUP_KEY is set.
    The caller holds ``backup_lock``. ``progress`` is called with "copying", "packing" and "checking"; if it raises,
    the backup ends and its files are removed. Raises BackupFailed.
    """
    key = _key()
    taken_at = clock().astimezone(UTC)
    try:
        path = _new_path(dest, taken_at, is_encrypted=bool(key))
        with _work_folder() as work:
            progress("copying")
            file, tables = _copy(database, work)
            manifest, files = _describe(database, file, tables, taken_at, clock().astimezone(UTC))
            part = path.with_name(f".{path.name}.part")
            try:
                progress("packing")
                _write(part, manifest, files, key)
                file.unlink()
                progress("checking")
                with verified_backup(part, database=database, is_schema_checked=False) as (read, _):
                    if read != manifest:
                        raise BackupFailed("The backup read back differs from what was written. Check the disk.")
                part.rename(path)
                sqlite.fsync_folder(path.parent)
            finally:
                part.unlink(missing_ok=True)
    except BadBackup as error:
        raise BackupFailed(f"The new backup can't be verified. {error.message}") from error
    except (OSError, sqlite3.Error, DatabaseError) as error:
        words = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
        raise BackupFailed(f"The backup failed: {words}.") from error
    return CreatedBackup(path, manifest, bool(key), path.stat().st_size)


@contextmanager
def verified_backup(
    file: Path,
    *,
    database: BaseDatabaseWrapper,
    parent: Path | None = None,
    check_manifest: Callable[[Manifest], None] = lambda _manifest: None,
    is_schema_checked: bool = True,
) -> Iterator[tuple[Manifest, Path]]:
    """Verify a backup, and yield its manifest and the temporary folder with its members.

    Verified are every byte, the MAC (unless it is missing or of another key), the database's integrity, and the rows
    and hash of every table; with ``is_schema_checked`` also its schema. For PostgreSQL, the dump is only listed: its
    rows can be compared after restoring. ``parent``: of the temporary folder. ``check_manifest`` may raise before the
    database is opened. The caller holds ``work_lock``. Raises BadBackup, Invalid, BackupFailed.
    """
    if not file.is_file():
        raise BadBackup(f"The file {file} doesn't exist.")
    with tempfile.TemporaryDirectory(prefix=WORK, dir=parent or settings.MEMORYHUB_HOME) as folder:
        try:
            manifest = unpack_backup(file, settings.MEMORYHUB_BACKUP_KEY, Path(folder))
        except OSError as error:
            raise BadBackup(f"The backup can't be read, or not extracted to {folder}: {error.strerror}.") from error
        _check_mac(manifest)
        check_manifest(manifest)
        copy = Path(folder, DATABASES[manifest.vendor])
        if manifest.vendor == "sqlite":
            if is_schema_checked:
                check_schema(copy, manifest)
            sqlite.check_copy(copy)
            if sqlite.contents(copy) != manifest.tables:
                raise BadBackup("The database in the backup doesn't match the manifest.")
        else:
            postgres.check_dump(database, copy, manifest.tables)
        yield manifest, Path(folder)


def _check_mac(manifest: Manifest) -> None:
    """Raise BadBackup if this hub's key proves that the backup was changed."""
    is_own = manifest.mac and manifest.key_check == key_check()
    if is_own and not constant_time_compare(manifest.mac, manifest_mac(manifest)):
        raise BadBackup("The backup was changed after it was created: its MAC doesn't match.")


def key_check() -> str:
    """Return a short hash that tells whether two hubs have the same secret key."""
    return salted_hmac("memoryhub.backup", "secret key", algorithm="sha256").hexdigest()[:8]


def key_file() -> Path | None:
    """Return the file of the hub's secret key; None if the key is set in the environment."""
    file: Path = settings.MEMORYHUB_HOME / "secret_key"
    return file if file.exists() and file.read_text().strip() == settings.SECRET_KEY else None


def _key() -> str:
    key: str = settings.MEMORYHUB_BACKUP_KEY
    if key and len(key) < MIN_KEY_LENGTH:
        raise BackupFailed(f"MEMORYHUB_BACKUP_KEY is too short: use at least {MIN_KEY_LENGTH} characters.")
    return key


def _new_path(dest: Path, taken_at: datetime, *, is_encrypted: bool) -> Path:
    if not (dest.is_dir() or dest.suffix == ""):
        if dest.exists():
            raise BackupFailed(f"{dest} already exists.")
        return dest
    dest.mkdir(parents=True, exist_ok=True, mode=0o700)
    name, ending = f"memoryhub-{taken_at:{STAMP}}", "sealed" if is_encrypted else "tar.gz"
    paths = [dest / f"{name}.{ending}", *(dest / f"{name}-{number}.{ending}" for number in range(2, 100))]
    return next(path for path in paths if not path.exists())


@contextmanager
def _work_folder() -> Iterator[Path]:
    for leftover in settings.MEMORYHUB_HOME.glob(f"{WORK}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=WORK, dir=settings.MEMORYHUB_HOME) as work:
        yield Path(work)


def _copy(database: BaseDatabaseWrapper, work: Path) -> tuple[Path, dict[str, Content]]:
    file = work / DATABASES[database.vendor]
    if database.vendor == "sqlite":
        source = Path(database.settings_dict["NAME"])
        if not source.exists():
            raise BackupFailed(f"The database {source} doesn't exist. Is MEMORYHUB_HOME the hub's folder?")
        _check_free_space(source.stat().st_size)
        sqlite.copy_database(source, file)
        sqlite.delete_sessions(file)
        return file, sqlite.contents(file)
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        _check_free_space(cursor.fetchone()[0])
    with direct_connection(database) as direct:
        return file, postgres.dump_database(direct, file)


def _check_free_space(size: int) -> None:
    free = shutil.disk_usage(settings.MEMORYHUB_HOME).free
    if free < size * ROOM:
        needed = f"{size * ROOM / 1e6:,.0f} MB"
        raise BackupFailed(f"The disk is too full: the copy needs {needed}, and {free / 1e6:,.0f} MB are free.")


def _describe(
    database: BaseDatabaseWrapper, file: Path, tables: dict[str, Content], taken_at: datetime, ended_at: datetime
) -> tuple[Manifest, Mapping[str, Path]]:
    files = {file.name: file}
    own_key = key_file()
    if own_key and settings.MEMORYHUB_BACKUP_KEY:
        files[SECRET_KEY] = own_key
    applied = MigrationRecorder(database).applied_migrations()
    manifest = Manifest(
        format=FORMAT,
        hub=hub_version(),
        vendor=database.vendor,
        database=database_label(database),
        taken_at=taken_at.isoformat(timespec="seconds"),
        ended_at=ended_at.isoformat(timespec="seconds"),
        migrations=sorted(f"{app}.{name}" for app, name in applied),
        tables=tables,
        digest=digest_of(tables),
        secret_key="inside" if SECRET_KEY in files else "left out" if own_key else "set outside",
        key_check=key_check(),
        members={name: content_of(member) for name, member in files.items()},
    )
    return replace(manifest, mac=manifest_mac(manifest)), files


@cache
def hub_version() -> str:
    """Return the version of the code that runs, or "unknown"."""
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
