"""Check the structure of the SQLite file and its disk, and keep the result beside it for the health address."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path

from django.db import DatabaseError, connection

from memoryhub.lib.database.faults import DAMAGED, fault_of

MIN_FREE = 2**20  # bytes of disk, below which changes soon fail
STEPS = 10_000  # of SQLite's virtual machine between two looks at the clock


def check_file(seconds: float) -> str:
    """Run SQLite's quick_check; return the first damage that it finds, or an empty text.

    Within the time limit, a large file is checked in part. On PostgreSQL this does nothing.
    """
    if connection.vendor != "sqlite":
        return ""
    found, is_complete = _first_damage(seconds)
    with suppress(OSError):  # on a full or read-only disk the result is only returned
        if found:
            _record().write_text(found)
        elif is_complete:
            _record().unlink(missing_ok=True)
    return found


def known_damage() -> str:
    """Return the damage that the last check found, or an empty text."""
    if connection.vendor != "sqlite":
        return ""
    try:
        return _record().read_text()
    except OSError:
        return ""


def is_disk_full() -> bool:
    """Return whether the disk of the SQLite file has no space left for changes."""
    if connection.vendor != "sqlite":
        return False
    try:
        return shutil.disk_usage(_record().parent).free < MIN_FREE
    except OSError:
        return False


def _first_damage(seconds: float) -> tuple[str, bool]:
    """Return the first damage, and whether the check came to an end."""
    end = time.monotonic() + seconds
    try:
        with connection.cursor() as cursor:
            connection.connection.set_progress_handler(lambda: time.monotonic() > end, STEPS)
            (found,) = cursor.execute("PRAGMA quick_check(1)").fetchone()
    except DatabaseError as error:
        return (str(error), True) if fault_of(error) is DAMAGED else ("", False)
    finally:
        if connection.connection:
            connection.connection.set_progress_handler(None, 0)
    return ("" if found == "ok" else str(found), True)


def _record() -> Path:
    path = Path(connection.settings_dict["NAME"])
    return path.with_name(f"{path.name}.damage")
