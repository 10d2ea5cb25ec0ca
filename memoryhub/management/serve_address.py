"""The address of the hub running on this machine: `serve` publishes it, and commands that create links read it."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from django.conf import settings

from memoryhub.mcp.forwarding import database_mark

TRIES = 4


@contextmanager
def publish_address(address: str) -> Iterator[None]:
    """Write the address to MEMORYHUB_HOME during the block, unless another hub already does.

    Its second line tells ``mcp_server`` whether it would use the same database.
    """
    file = _file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file.open("a") as opened:
        if not _lock(opened):
            yield
            return
        opened.truncate(0)
        opened.write(f"{address}\n{database_mark(settings.GIVEN_DATABASE_URL)}")
        opened.flush()
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def _lock(opened: TextIO) -> bool:
    """Lock the file. Commands lock it briefly to read it, so try more than once; another hub never lets go."""
    for _ in range(TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.05)
    return False


def address_for_links() -> str:
    """Return MEMORYHUB_URL if it is set, otherwise the address of the running hub, or else the default."""
    default = str(settings.MEMORYHUB_URL)
    return default if "MEMORYHUB_URL" in settings.GIVEN_SETTINGS else _published_address() or default


def _published_address() -> str:
    """Return the address of a running hub, or "". The lock shows that it runs, because it ends with the process."""
    with suppress(OSError), _file().open() as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return opened.readline().strip()
    return ""


def _file() -> Path:
    return Path(settings.MEMORYHUB_HOME) / "address"
