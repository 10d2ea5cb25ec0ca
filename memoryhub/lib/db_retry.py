"""Writing again where a database asks for it: locks, deadlocks and serialisation failures reach no user."""

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
_one_writer = threading.RLock()
LONGEST_WAIT = 2.0  # seconds that a reader waits for another writer


def retried(work: Callable[P, T]) -> Callable[P, T]:
    """Run a function that is one whole transaction again, up to five times, after a lock error.

    Inside a transaction it runs once: only the outermost may begin again. Raises the last OperationalError.
    """

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if connection.in_atomic_block:
            return work(*args, **kwargs)
        for attempt in range(ATTEMPTS - 1):
            try:
                with _turn():
                    return work(*args, **kwargs)
            except OperationalError as error:
                if not is_intermediate(error):
                    raise
                time.sleep(FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311  jitter, no secret
        with _turn():
            return work(*args, **kwargs)

    return run


def _turn() -> AbstractContextManager[object]:
    """Let the threads of this process write one after the other where the database has one writer.

    SQLite itself doesn't queue: who waits looks again now and then, and with many writers some wait for seconds.
    """
    return _one_writer if connection.vendor == "sqlite" else nullcontext()


def try_write(work: Callable[[], object], what: str) -> bool:
    """Run ``work`` as one transaction that a reader can do without, waiting briefly; tell whether it was done.

    A database that can't be written to keeps nobody from reading: the hub's log says ``what`` isn't written down.
    """
    try:
        with waiting_at_most(LONGEST_WAIT), transaction.atomic():
            work()
    except DatabaseError as error:
        logger.warning("%s can't be written down: %s", what, error)
        return False
    return True


@contextmanager
def waiting_at_most(seconds: float) -> Iterator[None]:
    """Wait no longer for SQLite's one writer inside this block; PostgreSQL has its own limit and fewer locks."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        usual = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        cursor.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {int(usual)}")


def is_intermediate(error: OperationalError) -> bool:
    """Tell a collision from a fault: SQLite's busy and locked, PostgreSQL's class 40 and lock_not_available."""
    state = getattr(error.__cause__, "sqlstate", None) or ""
    return state.startswith("40") or state == "55P03" or "is locked" in str(error)
