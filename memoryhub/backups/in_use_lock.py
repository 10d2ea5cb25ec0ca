"""Who uses a database: hubs and workers share a lock on it, and a restore has to have it alone.

SQLite: a file beside the database, since a restore replaces the file itself. PostgreSQL: an advisory lock on a
connection of its own, seen from every machine. Either is free as soon as the process that held it is gone, and not
before: a row of ``Process`` expires while its process sleeps.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext

from memoryhub.backups.errors import NoLock, RestoreUnderWay
from memoryhub.lib.errors import Busy

APPLICATION = "memoryhub lock"  # by which a restore knows its own connection
_LOCK = 0x6D656D6F7279  # the advisory lock


@contextmanager
def using_database(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Keep restores away for the length of the block. Raises RestoreUnderWay, NoLock."""
    with _locked(database, alone=False) as is_ours:
        if not is_ours:
            raise RestoreUnderWay("A backup is being restored here: start the hub again when that is done.")
        yield


@contextmanager
def alone_with_database(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Keep hubs and workers from starting for the length of the block. Raises Busy, NoLock."""
    with _locked(database, alone=True) as is_ours:
        if not is_ours:
            words = "The hub runs on this database: stop it, and its workers, and restore then."
            raise Busy(words, code="hub_runs")
        yield


@contextmanager
def _locked(database: BaseDatabaseWrapper, *, alone: bool) -> Iterator[bool]:
    """Hold the lock, shared or alone, for the length of the block; yield whether it is ours."""
    locked = _file_lock if database.vendor == "sqlite" else _advisory_lock
    with locked(database, alone=alone) as is_ours:
        yield is_ours


@contextmanager
def _file_lock(database: BaseDatabaseWrapper, *, alone: bool) -> Iterator[bool]:
    place = Path(database.settings_dict["NAME"])
    file = place.with_name(f"{place.name}.lock")
    try:
        lock = file.open("a")
    except OSError as error:
        raise NoLock(f"The database's folder can't be written to ({file}): {error.strerror}.") from error
    with lock:
        try:
            fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


@contextmanager
def _advisory_lock(database: BaseDatabaseWrapper, *, alone: bool) -> Iterator[bool]:
    own = database.copy()
    function = "pg_try_advisory_lock" if alone else "pg_try_advisory_lock_shared"
    try:
        with own.cursor() as cursor:
            cursor.execute("SELECT set_config('application_name', %s, false)", [APPLICATION])
            cursor.execute(f"SELECT {function}(%s)", [_LOCK])
            is_ours = bool(cursor.fetchone()[0])
        yield is_ours
    finally:
        own.close()


def database_words(database: BaseDatabaseWrapper) -> str:
    """Say which database it is, for people."""
    values = database.settings_dict
    if database.vendor == "sqlite":
        return f"SQLite, {values['NAME']}"
    words = gettext("PostgreSQL, %(name)s on %(host)s")
    return words % {"name": values["NAME"], "host": values["HOST"] or gettext("this machine")}
