"""Processes that use the database: web processes, workers and commands. Each renews its own row.

Leases belong to processes. A lease ends when its process is dead, which is known at once on the same machine, or when
the row wasn't renewed for ``EXPIRY``, by the database's clock.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.db.models import Q
from django.db.models.functions import Now

from memoryhub.lib.database import db_retry
from memoryhub.models import Process

logger = logging.getLogger(__name__)
EXPIRY = timedelta(seconds=10)
BUSY_SECONDS = 2.0  # between renewals while a lease is held
IDLE_SECONDS = {"sqlite": 30.0, "postgresql": 4.0}  # users of an SQLite file share a machine
RECENT = timedelta(seconds=60)  # of an idle process
DELETED_AFTER = timedelta(days=1)
_held: Counter[str] = Counter()  # leases held by threads of this process
_lock = threading.Lock()
_is_registered = threading.Event()


@lru_cache
def _name(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}:{_started_at(pid) or uuid.uuid4().hex[:8]}"


def this_process() -> str:
    """Return the name of this process: host, process id and start time."""
    return _name(os.getpid())


def this_home() -> str:
    """Return the host and MEMORYHUB_HOME of this hub."""
    return f"{socket.gethostname()}:{settings.MEMORYHUB_HOME}"[:300]


def home_of_files() -> str:
    """Return ``this_home()`` for jobs that need files in it, or "" if MEMORYHUB_FILES says that all hubs share it."""
    return "" if str(settings.MEMORYHUB_HOME) == settings.MEMORYHUB_FILES else this_home()


def _started_at(pid: int) -> str:
    """Return the start time of a local process in clock ticks since boot; "" if unknown."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def is_alive_here(name: str) -> bool | None:
    """Return whether a local process is alive; None for a process of another machine."""
    host, number, started_at = name.rsplit(":", 2) if name.count(":") >= 2 else ("", "", "")
    if host != socket.gethostname() or not number.isdigit():
        return None
    if int(number) == os.getpid():  # pids are reused, for example after restarting a container
        return name == this_process()
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _started_at(int(number)) in ("", started_at)


def expired(names: Collection[str]) -> set[str]:
    """Return the processes that are dead, or on another machine without a fresh row."""
    states = {name: is_alive_here(name) for name in names}
    elsewhere = [name for name, is_alive in states.items() if is_alive is None]
    fresh = Process.objects.filter(name__in=elsewhere, seen_at__gte=Now() - EXPIRY) if elsewhere else []
    alive = {process.name for process in fresh} | {name for name, is_alive in states.items() if is_alive}
    return set(names) - alive


def live_processes(*kinds: str) -> list[Process]:
    """Return the processes that are probably alive."""
    rows = Process.objects.filter(Q(kind__in=kinds) if kinds else Q(), seen_at__gte=Now() - RECENT).order_by("id")
    return [process for process in rows if is_alive_here(process.name) is not False]


def renew_known_lease() -> bool:
    """Renew this process's row if it has one; return whether it has."""
    return _is_registered.is_set() and bool(Process.objects.filter(name=this_process()).update(seen_at=Now()))


@db_retry.retried
def renew_lease(kind: str = Process.Kind.COMMAND) -> None:
    """Renew or create this process's row."""
    if not Process.objects.filter(name=this_process()).update(seen_at=Now()):
        values = {"kind": kind, "host": socket.gethostname()[:200], "pid": os.getpid(), "home": this_home()}
        Process.objects.update_or_create(name=this_process(), defaults=values | {"seen_at": Now()})


@contextmanager
def holding(name: str) -> Iterator[None]:
    """Hold a lease, so that the process's row is renewed more often."""
    with _lock:
        _held[name] += 1
    try:
        yield
    finally:
        with _lock:
            _held[name] -= 1


def is_held_here(name: str) -> bool:
    """Return whether a thread of this process holds a lease."""
    return _held[name] > 0


@contextmanager
def registered(kind: str, *, also: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Register this process, and renew its row during the block. ``also``: what is done each time."""
    ended = threading.Event()
    renew_lease(kind)
    _is_registered.set()
    thread = threading.Thread(target=_renew, args=(kind, ended, also), name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        _is_registered.clear()
        thread.join(BUSY_SECONDS)
        try:
            Process.objects.filter(name=this_process()).delete()
        except DatabaseError as error:
            logger.warning("can't delete the row of this process: %s", error)


def _renew(kind: str, ended: threading.Event, also: Callable[[], None]) -> None:
    renewed_at = time.monotonic()
    while not ended.wait(BUSY_SECONDS):
        if not any(_held.values()) and time.monotonic() - renewed_at < IDLE_SECONDS[connection.vendor]:
            continue
        close_old_connections()
        try:
            renew_lease(kind)
            renewed_at = time.monotonic()
            also()
        except DatabaseError as error:
            logger.warning("can't renew the lease of this process: %s", error)
    connection.close()


def forget_old_processes() -> None:
    """Delete the rows of processes that ended without deleting theirs."""
    Process.objects.filter(seen_at__lt=Now() - DELETED_AFTER).delete()
