"""Create the tables of a new database, and explain why another one can't be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.core.management import call_command
from django.db import DatabaseError, DataError, IntegrityError, ProgrammingError, connection

from memoryhub.backups.in_use_lock import migration_lock, using_database
from memoryhub.lib.database.direct_connection import default_is_direct
from memoryhub.lib.database.faults import UNAVAILABLE, fault_of
from memoryhub.lib.database.migrations import applied_migrations, is_too_old, pending_migrations
from memoryhub.lib.errors import Busy, Refused
from memoryhub.system_checks import TOO_OLD, UPGRADE_FIRST
from sessions_app.services.secret_key import require_known_key

T = TypeVar("T")


def run_on_ready_database(work: Callable[[], T]) -> T:
    """Return the result of ``work``. If tables are missing because the database is new, create them and try again.

    Raises Refused or Busy if the database can't be used.
    """
    try:
        return work()
    except DatabaseError as error:
        if isinstance(error, (IntegrityError, DataError)) or connection.in_atomic_block or not _create_tables(error):
            raise
    return work()


def prepare_database() -> None:
    """Create the tables of a new database. Raises Refused or Busy if the database can't be used."""
    try:
        _create_tables(None)
        require_known_key()
    except DatabaseError as error:
        raise _unavailable(error) from error


def _create_tables(error: DatabaseError | None) -> bool:
    """Create the tables if there are none; return whether that was necessary. ``error``: why this is called."""
    try:
        applied = applied_migrations(connection)
    except DatabaseError as problem:
        raise _unavailable(problem) from problem
    if is_too_old(applied):
        raise Refused(f"{TOO_OLD} {UPGRADE_FIRST}", code="database_too_old")
    if not pending_migrations(applied):
        if error and not isinstance(error, ProgrammingError):
            raise _unavailable(error) from error
        return False
    with using_database(connection), migration_lock(connection), default_is_direct():
        applied = applied_migrations(connection)  # a hub may have migrated the database meanwhile
        if pending_migrations(applied):
            if applied:
                words = "The database isn't up to date. Run `python3 manage.py migrate`."
                raise Refused(words, code="database_not_migrated")
            call_command("migrate", interactive=False, verbosity=0)
    return True


def _unavailable(error: DatabaseError) -> Busy:
    fault = fault_of(error)
    if fault and fault is not UNAVAILABLE:
        return Busy(fault.message, code="database_unavailable")
    first_line = str(error).strip().partition("\n")[0]
    return Busy(f"The database can't be used: {first_line}", code="database_unavailable")
