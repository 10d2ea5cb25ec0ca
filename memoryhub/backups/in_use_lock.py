"""Who uses a database: hubs and workers share a lock on it, and a restore has to have it alone."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext

from memoryhub.backups.errors import NoLock, RestoreUnderWay
from memoryhub.lib.errors import Busy


@contextmanager
def using_database(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Keep restores away for the length of the block. Raises RestoreUnderWay, NoLock."""
    with _opened_lock(database) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RestoreUnderWay("A backup is being restored here: start the hub again when that is done.") from None
        yield


@contextmanager
def alone_with_database(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Keep hubs and workers from starting for the length of the block. Raises Busy, NoLock."""
    with _opened_lock(database) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(
                "The hub runs on this database: stop it, and its workers, and restore then.", code="hub_runs"
            ) from None
        yield


def _opened_lock(database: BaseDatabaseWrapper) -> IO[str]:
    file = _lock_file(database)
    try:
        return file.open("a")
    except OSError as error:
        raise NoLock(f"The database's folder can't be written to ({file}): {error.strerror}.") from error


def _lock_file(database: BaseDatabaseWrapper) -> Path:
    """Return a file that stands for the database: beside it, or in the hub's home for one on a server."""
    values = database.settings_dict
    if database.vendor == "sqlite":
        file = Path(values["NAME"])
        return file.with_name(f"{file.name}.lock")
    place = f"{values['HOST']}:{values['PORT']}/{values['NAME']}"
    locks: Path = settings.MEMORYHUB_HOME / "locks"
    locks.mkdir(parents=True, exist_ok=True, mode=0o700)
    return locks / f"database-{hashlib.sha256(place.encode()).hexdigest()[:16]}.lock"


def database_words(database: BaseDatabaseWrapper) -> str:
    """Say which database it is, for people."""
    values = database.settings_dict
    if database.vendor == "sqlite":
        return f"SQLite, {values['NAME']}"
    words = gettext("PostgreSQL, %(name)s on %(host)s")
    return words % {"name": values["NAME"], "host": values["HOST"] or gettext("this machine")}
