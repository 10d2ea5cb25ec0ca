"""Locks that one process at a time can hold: lock files on SQLite, advisory locks on PostgreSQL.

Processes that share an SQLite database run on one machine. Advisory locks also work between machines. Both end with
their process: a lock file at once, an advisory lock when the process's connection ends. PostgreSQL notices within
seconds that a machine is gone, because it is asked to probe the connection.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from filelock import FileLock, Timeout

from memoryhub.lib.database.direct_connection import new_direct_connection

APPLICATION = "memoryhub lock"  # application_name of connections that hold locks, which a restore ignores
RETRY_SECONDS = 0.05
PING_SECONDS = 2.0  # between checks whether the connection is alive
LOST_AFTER_MS = 10_000  # without an answer from PostgreSQL
_PROBES = "SET tcp_keepalives_idle = 4; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3"


class _LockConnection:
    """The connection that holds the advisory locks of this process. It is open while there are any."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._own: BaseDatabaseWrapper | None = None
        self._names: set[str] = set()
        self._pinged_at = 0.0

    def acquire(self, name: str) -> BaseDatabaseWrapper | None:
        """Return the connection that now holds the lock; None if a thread or another process holds it."""
        with self._mutex:
            if self._own is not None and not self._is_alive():
                self._close()
            if name in self._names:
                return None
            try:
                own = self._own = self._own or _connect()
                if _select(own, "SELECT pg_try_advisory_lock(%s)", name):
                    self._names.add(name)
                    return own
            except DatabaseError:
                self._close()
                raise
            self._close_if_unused()
            return None

    def is_held(self, own: BaseDatabaseWrapper) -> bool:
        """Return whether the connection that acquired a lock still exists."""
        with self._mutex:
            if self._own is own and not self._is_alive():
                self._close()
            return self._own is own

    def release(self, own: BaseDatabaseWrapper, name: str) -> None:
        with self._mutex:
            if self._own is not own:
                return
            self._names.discard(name)
            try:
                _select(own, "SELECT pg_advisory_unlock(%s)", name)
            except DatabaseError:
                self._close()
            self._close_if_unused()

    def _is_alive(self) -> bool:
        if self._own is None:
            return False
        if time.monotonic() - self._pinged_at >= PING_SECONDS:
            self._pinged_at = time.monotonic()
            return self._own.is_usable()
        return True

    def _close_if_unused(self) -> None:
        if not self._names:
            self._close()

    def _close(self) -> None:
        """Close the connection, which ends its locks."""
        own, self._own, self._names = self._own, None, set()
        if own is not None:
            with suppress(DatabaseError):
                own.close()


def _connect() -> BaseDatabaseWrapper:
    own = new_direct_connection(connection)
    options = {"tcp_user_timeout": LOST_AFTER_MS, "connect_timeout": LOST_AFTER_MS // 1000}
    own.settings_dict = {**own.settings_dict, "OPTIONS": {**own.settings_dict["OPTIONS"], **options}}
    own.inc_thread_sharing()  # used by one thread at a time
    with own.cursor() as cursor:
        cursor.execute(_PROBES)
        cursor.execute("SELECT set_config('application_name', %s, false)", [APPLICATION])
    return own


def _select(own: BaseDatabaseWrapper, query: str, name: str) -> bool:
    with own.cursor() as cursor:
        cursor.execute(query, [lock_key(name)])
        return bool(cursor.fetchone()[0])


def lock_key(name: str) -> int:
    """Return the number of a lock's advisory lock."""
    return int.from_bytes(hashlib.sha256(f"memoryhub {name}".encode()).digest()[:8], signed=True)


_locks = _LockConnection()


class ProcessLock:
    """A lock that this process holds."""

    def __init__(self, name: str, held: FileLock | BaseDatabaseWrapper) -> None:
        self._name, self._held = name, held

    def is_held(self) -> bool:
        """Return whether the lock is still held: an advisory lock is lost with its connection."""
        return isinstance(self._held, FileLock) or _locks.is_held(self._held)

    def release(self) -> None:
        if isinstance(self._held, FileLock):
            self._held.release()
        else:
            _locks.release(self._held, self._name)


def acquire_lock(name: str, *, timeout: float = 0.0) -> ProcessLock | None:
    """Acquire a lock, and wait ``timeout`` seconds for it; None if another process or thread holds it."""
    if connection.vendor == "sqlite":
        return acquire_file_lock(name, timeout=timeout)
    deadline = time.monotonic() + timeout
    while (own := _locks.acquire(name)) is None:
        if time.monotonic() >= deadline:
            return None
        time.sleep(RETRY_SECONDS)
    return ProcessLock(name, own)


def acquire_file_lock(name: str, *, timeout: float = 0.0) -> ProcessLock | None:
    """Acquire a lock of the processes with this MEMORYHUB_HOME, like ``acquire_lock``."""
    locks: Path = settings.MEMORYHUB_HOME / "locks"
    locks.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = FileLock(locks / f"{name}.lock", timeout=timeout, mode=0o600, thread_local=False)
    try:
        file.acquire()
    except Timeout:
        return None
    return ProcessLock(name, file)


@contextmanager
def process_lock(name: str, *, timeout: float = 0.0) -> Iterator[bool]:
    """Hold a lock during the block, and yield whether it was acquired."""
    lock = acquire_lock(name, timeout=timeout)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.release()
