"""Retry transactions after lock timeouts, deadlocks and serialisation failures."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import DatabaseError, OperationalError, connection, transaction

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
ATTEMPTS = 6
FIRST_PAUSE = 0.05  # seconds, doubled each time, with jitter
_writer_lock = threading.RLock()
MAX_WAIT = 2.0  # seconds that ``try_write`` waits for another writer


def retried(work: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that is one transaction, so that it is retried up to five times after a lock error.

    Inside another transaction it runs once, because only the outermost can be retried. Raises the last
    OperationalError.
    """

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if connection.in_atomic_block:
            return work(*args, **kwargs)
        for attempt in range(ATTEMPTS - 1):
            try:
                with _exclusive_on_sqlite():
                    return work(*args, **kwargs)
            except OperationalError as error:
                if not is_transient(error):
                    raise
                time.sleep(FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311  not a secret
        with _exclusive_on_sqlite():
            return work(*args, **kwargs)

    return run


def _exclusive_on_sqlite() -> AbstractContextManager[object]:
    """Serialise the writes of this process's threads on SQLite, which has one writer.

    SQLite doesn't queue writers, but makes them poll: with many of them, some would wait for seconds.
    """
    return _writer_lock if connection.vendor == "sqlite" else nullcontext()


@contextmanager
def _exclusive_within(seconds: float) -> Iterator[None]:
    """Take this process's turn to write on SQLite, as ``retried`` does. Raises OperationalError after a timeout."""
    if connection.vendor != "sqlite":
        yield
        return
    if not _writer_lock.acquire(timeout=seconds):
        raise OperationalError("database is locked by other writers of this process")
    try:
        yield
    finally:
        _writer_lock.release()


def try_write(work: Callable[[], object], what: str) -> bool:
    """Run an optional write as one transaction, waiting at most two seconds; return whether it succeeded.

    If it fails, a warning with ``what`` is logged, so that a locked database doesn't prevent reading.
    """
    try:
        with _exclusive_within(MAX_WAIT), waiting_at_most(MAX_WAIT), transaction.atomic():
            work()
    except DatabaseError as error:
        logger.warning("%s couldn't be recorded: %s", what, error)
        return False
    return True


@contextmanager
def waiting_at_most(seconds: float) -> Iterator[None]:
    """Limit how long statements in this block wait for SQLite's lock. No effect on PostgreSQL."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        old_timeout = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        cursor.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {int(old_timeout)}")


def is_transient(error: OperationalError) -> bool:
    """Return whether a retry may succeed: SQLite is locked; PostgreSQL's class 40 or lock_not_available."""
    state = getattr(error.__cause__, "sqlstate", None) or ""
    return state.startswith("40") or state == "55P03" or "is locked" in str(error)
