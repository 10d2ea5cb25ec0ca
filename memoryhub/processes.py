"""Processes that use the database: web processes, workers and commands, each with a row that it renews.

A lease belongs to such a process. It ends when the process is known to be dead, which its own machine tells at once,
or when its row wasn't renewed for ``EXPIRY`` by the clock of the database.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.db.models import Q
from django.db.models.functions import Now

from memoryhub.lib import db_retry
from memoryhub.models import Process

logger = logging.getLogger(__name__)
EXPIRY = timedelta(seconds=10)
BUSY_SECONDS = 2.0  # between two renewals while something is held
IDLE_SECONDS = {"sqlite": 30.0, "postgresql": 4.0}  # those who share a SQLite file share a machine as well
FRESH = timedelta(seconds=60)  # of a process that is idle
FORGOTTEN = timedelta(days=1)
_held: Counter[str] = Counter()  # what threads of this process are at work on
_noting = threading.Lock()
_is_registered = threading.Event()


@lru_cache
def _name(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}:{_birth(pid) or uuid.uuid4().hex[:8]}"


def this_process() -> str:
    """Return the name of this process: host, process id and birth."""
    return _name(os.getpid())


def this_home() -> str:
    """Return the name of the folder that holds this hub's files: host and path."""
    return f"{socket.gethostname()}:{settings.MEMORYHUB_HOME}"[:300]


def _birth(pid: int) -> str:
    """Return when a process of this machine started, in clock ticks since boot; "" where the system doesn't say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def is_alive_here(name: str) -> bool | None:
    """Tell whether a process of this machine lives; None for one of another machine, where only its row can tell."""
    host, number, birth = name.rsplit(":", 2) if name.count(":") >= 2 else ("", "", "")
    if host != socket.gethostname() or not number.isdigit():
        return None
    if int(number) == os.getpid():  # numbers come again: after a restart of a container, the same one
        return name == this_process()
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _birth(int(number)) in ("", birth)


def expired(names: Collection[str]) -> set[str]:
    """Return which of these processes are gone: dead on this machine, or elsewhere and without a fresh row."""
    states = {name: is_alive_here(name) for name in names}
    elsewhere = [name for name, is_alive in states.items() if is_alive is None]
    fresh = Process.objects.filter(name__in=elsewhere, seen_at__gte=Now() - EXPIRY) if elsewhere else []
    alive = {process.name for process in fresh} | {name for name, is_alive in states.items() if is_alive}
    return set(names) - alive


def live_processes(*kinds: str) -> list[Process]:
    """Return the processes that are alive as far as can be told."""
    rows = Process.objects.filter(Q(kind__in=kinds) if kinds else Q(), seen_at__gte=Now() - FRESH).order_by("id")
    return [process for process in rows if is_alive_here(process.name) is not False]


def renew_known_lease() -> bool:
    """Write that this process is alive, by the database's clock, where it has a row; tell whether it has."""
    return _is_registered.is_set() and bool(Process.objects.filter(name=this_process()).update(seen_at=Now()))


@db_retry.retried
def renew_lease(kind: str = Process.Kind.COMMAND) -> None:
    """Write that this process is alive, by the database's clock."""
    if not Process.objects.filter(name=this_process()).update(seen_at=Now()):
        values = {"kind": kind, "host": socket.gethostname()[:200], "pid": os.getpid(), "home": this_home()}
        Process.objects.update_or_create(name=this_process(), defaults=values | {"seen_at": Now()})


@contextmanager
def holding(what: str) -> Iterator[None]:
    """Note that this process is at work on something: its row is renewed more often meanwhile."""
    with _noting:
        _held[what] += 1
    try:
        yield
    finally:
        with _noting:
            _held[what] -= 1


def is_held_here(what: str) -> bool:
    """Tell whether a thread of this process is at work on something."""
    return _held[what] > 0


@contextmanager
def registered(kind: str) -> Iterator[None]:
    """Keep a row for this process, renewed until the end of the block."""
    over = threading.Event()
    renew_lease(kind)
    _is_registered.set()
    thread = threading.Thread(target=_renew, args=(kind, over), name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        _is_registered.clear()
        thread.join(BUSY_SECONDS)
        try:
            Process.objects.filter(name=this_process()).delete()
        except DatabaseError as error:
            logger.warning("the row of this process can't be removed: %s", error)


def _renew(kind: str, over: threading.Event) -> None:
    renewed_at = time.monotonic()
    while not over.wait(BUSY_SECONDS):
        if not any(_held.values()) and time.monotonic() - renewed_at < IDLE_SECONDS[connection.vendor]:
            continue
        close_old_connections()
        try:
            renew_lease(kind)
            renewed_at = time.monotonic()
        except DatabaseError as error:
            logger.warning("the lease of this process can't be renewed: %s", error)
    connection.close()


def forget_old_processes() -> None:
    """Remove the rows of processes that ended without removing theirs."""
    Process.objects.filter(seen_at__lt=Now() - FORGOTTEN).delete()
