"""Recognise faults of the database and its disk, and say truthfully what is known about the change."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError, OperationalError
from django.utils.translation import gettext, gettext_noop

from memoryhub.lib.database.db_retry import is_transient

FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
MAX_CAUSES = 10  # of an exception


@dataclass(frozen=True)
class DatabaseFault:
    """A fault that isn't the hub's. ``status``: of the HTTP response. ``retry_after``: in seconds."""

    code: str
    status: int
    text: str
    retry_after: int

    @property
    def message(self) -> str:
        return gettext(self.text)


BUSY = DatabaseFault("busy", 503, gettext_noop("The database is busy. Send the request again."), 5)
DISK_FULL = DatabaseFault(
    "disk_full", 507, gettext_noop("The hub's disk is full. The last change was not saved."), 60
)
READ_ONLY = DatabaseFault(
    "read_only", 503, gettext_noop("The hub's database is read-only. The last change was not saved."), 60
)
DAMAGED = DatabaseFault(
    "database_damaged",
    503,
    gettext_noop("The hub's database file is damaged. Restore a backup: python3 manage.py restore."),
    60,
)
UNAVAILABLE = DatabaseFault(
    "database_unavailable",
    503,
    gettext_noop(
        "The hub can't reach its database. If you were saving something, it may or may not have been saved: check "
        "before you send it again."
    ),
    5,
)
SQLITE_FAULTS = {  # the start of SQLite's messages
    "database or disk is full": DISK_FULL,
    "attempt to write a readonly database": READ_ONLY,
    "database disk image is malformed": DAMAGED,
    "file is not a database": DAMAGED,
    "malformed database schema": DAMAGED,
    "unable to open database file": UNAVAILABLE,
    "disk I/O error": UNAVAILABLE,
}
POSTGRES_FAULTS = {  # the start of SQLSTATE: see "PostgreSQL Error Codes" in its documentation
    "53100": DISK_FULL,
    "25006": READ_ONLY,  # also a standby
    "XX001": DAMAGED,
    "XX002": DAMAGED,
    "08": UNAVAILABLE,
    "53": UNAVAILABLE,  # too many connections, out of memory
    "57P": UNAVAILABLE,  # shutting down or starting
    "58": UNAVAILABLE,
}


def fault_of(error: BaseException | None) -> DatabaseFault | None:
    """Return the fault that an exception, or one that it was raised from, is a sign of; otherwise None."""
    return next((fault for cause in _causes(error) if (fault := _fault(cause))), None)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(MAX_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__


def _fault(error: BaseException) -> DatabaseFault | None:
    if isinstance(error, OSError) and error.errno in FULL_DISK:
        return DISK_FULL
    if not isinstance(error, DatabaseError | InterfaceError):
        return None
    if isinstance(error, OperationalError) and is_transient(error):
        return BUSY
    text, state = str(error), getattr(error.__cause__, "sqlstate", None) or ""
    for start, fault in SQLITE_FAULTS.items():
        if text.startswith(start):
            return fault
    for start, fault in POSTGRES_FAULTS.items():
        if state.startswith(start):
            return fault
    return UNAVAILABLE if _is_connection_lost(error, state) else None


def _is_connection_lost(error: Exception, state: str) -> bool:
    """Tell whether PostgreSQL's driver has lost the connection; such errors have no SQLSTATE."""
    if isinstance(error, InterfaceError):
        return True
    is_of_postgres = type(error.__cause__).__module__.startswith("psycopg")
    return isinstance(error, OperationalError) and is_of_postgres and not state
