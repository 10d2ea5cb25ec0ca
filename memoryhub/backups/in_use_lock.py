"""A lock on the database, shared by hubs and workers and exclusive for a restore.

On SQLite it is a file next to the database, since a restore replaces the database file. On PostgreSQL it is an
advisory lock on its own connection, which works across machines. Both are released when their process ends. A row of
``Process`` can't do this: it expires while its process sleeps.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext
from filelock import FileLock

from memoryhub.backups.errors import NoLock, RestoreUnderWay
from memoryhub.lib.database.direct_connection import direct_connection
from memoryhub.lib.errors import Busy
from memoryhub.lib.process_locks import APPLICATION

_LOCK = 0x6D656D6F7279  # the advisory lock
_MIGRATION_LOCK = _LOCK + 1


@contextmanager
def using_database(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Hold the lock shared. Raises RestoreUnderWay, also if the last restore didn't finish, and NoLock."""
    with _locked(database, alone=False) as is_acquired:
        if not is_acquired:
            raise RestoreUnderWay("A backup is being restored. Start the hub again when that has finished.")
        require_finished_restore(database)
        yield


def unfinished_file(database: BaseDatabaseWrapper) -> Path:
    """Return the file that a restore writes before it replaces the database, and removes when it has finished.

    It has what was revoked and forgotten in the replaced database.
    """
    name = Path(database.settings_dict["NAME"])
    folder = name.parent if database.vendor == "sqlite" else settings.MEMORYHUB_HOME
    return folder / f"{name.name}.restoring.json"


def require_finished_restore(database: BaseDatabaseWrapper) -> None:
    """Raise RestoreUnderWay if the last restore was interrupted."""
    if unfinished_file(database).exists():
        raise RestoreUnderWay(
            "The last restore was interrupted, so what was forgotten or revoked since the backup may be back. Run "
            "`restore` again, then start the hub."
        )


@contextmanager
def exclusive_database(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Hold the lock exclusively. Raises Busy, NoLock."""
    with _locked(database, alone=True) as is_acquired:
        if not is_acquired:
            message = "The hub is running on this database. Stop it and its workers, then restore."
            raise Busy(message, code="hub_runs")
        yield


@contextmanager
def _locked(database: BaseDatabaseWrapper, *, alone: bool) -> Iterator[bool]:
    """Hold the lock, and yield whether it was acquired."""
    locked = _file_lock if database.vendor == "sqlite" else _advisory_lock
    with locked(database, alone=alone) as is_acquired:
        yield is_acquired


@contextmanager
def _file_lock(database: BaseDatabaseWrapper, *, alone: bool) -> Iterator[bool]:
    path = Path(database.settings_dict["NAME"])
    file = path.with_name(f"{path.name}.lock")
    try:
        lock = file.open("a")
        with suppress(PermissionError):  # another user's file
            os.fchmod(lock.fileno(), 0o600)
    except OSError as error:
        raise NoLock(f"The lock file {file} can't be created: {error.strerror}.") from error
    with lock:
        try:
            fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


@contextmanager
def _advisory_lock(database: BaseDatabaseWrapper, *, alone: bool) -> Iterator[bool]:
    suffix = "" if alone else "_shared"
    with direct_connection(database) as own:
        with own.cursor() as cursor:
            cursor.execute("SELECT set_config('application_name', %s, false)", [APPLICATION])
            cursor.execute(f"SELECT pg_try_advisory_lock{suffix}(%s)", [_LOCK])
            is_acquired = bool(cursor.fetchone()[0])
        try:
            yield is_acquired
        finally:
            if is_acquired:  # PostgreSQL notices a closed connection only a moment later
                with suppress(DatabaseError), own.cursor() as cursor:
                    cursor.execute(f"SELECT pg_advisory_unlock{suffix}(%s)", [_LOCK])


@contextmanager
def migration_lock(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Wait until no other process migrates this database, and hold the lock."""
    if database.vendor == "sqlite":
        path = Path(database.settings_dict["NAME"])
        with FileLock(path.with_name(f"{path.name}.migrating"), mode=0o600):
            yield
        return
    with direct_connection(database) as own:
        with own.cursor() as cursor:
            cursor.execute("SET lock_timeout = 0")  # migrations may take minutes
            cursor.execute("SELECT pg_advisory_lock(%s)", [_MIGRATION_LOCK])
        yield


def database_label(database: BaseDatabaseWrapper) -> str:
    values = database.settings_dict
    if database.vendor == "sqlite":
        return f"SQLite, {values['NAME']}"
    label = gettext("PostgreSQL, %(name)s on %(host)s")
    return label % {"name": values["NAME"], "host": values["HOST"] or gettext("this machine")}
