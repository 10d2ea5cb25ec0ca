"""Where the hub of this machine really listens: `serve` writes it down, commands that make links read it."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from django.conf import settings

TRIES = 4


@contextmanager
def listening_at(address: str) -> Iterator[None]:
    """Keep an address in the hub's home for the length of the block, unless another hub of this home has its own."""
    file = _file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file.open("a") as note:
        if not _is_ours(note):
            yield
            return
        note.truncate(0)
        note.write(address)
        note.flush()
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def _is_ours(note: TextIO) -> bool:
    """Lock the file; a command that reads it holds it for a moment, another hub for its life."""
    for _ in range(TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.05)
    return False


def address_for_links() -> str:
    """Return MEMORYHUB_URL where it is given; else where a hub listens now, and the default where none does."""
    default = str(settings.MEMORYHUB_URL)
    return default if "MEMORYHUB_URL" in settings.GIVEN_SETTINGS else _noted() or default


def _noted() -> str:
    """Return the address of a hub that runs: its lock ends with its process, however that ended."""
    with suppress(OSError), _file().open() as note:
        try:
            fcntl.flock(note, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return note.read()
    return ""


def _file() -> Path:
    return Path(settings.MEMORYHUB_HOME) / "address"
