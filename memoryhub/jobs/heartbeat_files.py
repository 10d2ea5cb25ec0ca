"""Who is at work on this machine: files that a process holds for as long as it lives, whatever ends it.

A file that lies there and is held by nobody tells at once what was interrupted. Other machines know nothing of it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

WORKERS = "workers"


@contextmanager
def at_work(name: str) -> Iterator[Callable[[str], None]]:
    """Hold a piece of work for the length of the block, and yield what notes where it is."""
    file = _lock_file(name)
    with file.open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield lambda text: _note(lock.fileno(), text)
        finally:
            file.unlink(missing_ok=True)  # while it is held: a file that lies there free was left by a killed process


def lives(name: str) -> bool | None:
    """Tell whether whoever is at a piece of work lives; None where nobody of this machine ever was, or it is done."""
    file = _lock_file(name)
    if not file.exists():
        return None
    return not _is_free(file)


def clear_away(name: str) -> None:
    """Remove what a killed process left of a piece of work that is settled now."""
    _lock_file(name).unlink(missing_ok=True)


def where_at(name: str) -> str:
    """Return what the work at hand noted last, "" where it noted nothing here."""
    try:
        return _lock_file(name).read_text(errors="replace")
    except OSError:
        return ""


@contextmanager
def working() -> Iterator[None]:
    """Be known as a worker of this machine for the length of the block."""
    with _lock_file(WORKERS).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def worker_lives() -> bool:
    """Tell whether a worker runs on this machine."""
    return lives(WORKERS) is True


def _is_free(file: Path) -> bool:
    try:
        with file.open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it isn't there, or somebody holds it
        return False
    return True


def _note(handle: int, text: str) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(errors="replace")[:1_000], 0)


def _lock_file(name: str) -> Path:
    folder: Path = settings.MEMORYHUB_HOME / "locks"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / f"{name}.lock"
