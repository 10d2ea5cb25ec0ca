"""Copying an SQLite database while it is used, looking into a copy, and putting one in its place."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from memoryhub.backups.archive import BadBackup, Content
from memoryhub.lib.errors import Busy, Refused

STEP_PAGES = 4_096  # 16 MB at a time
BATCH_ROWS = 1_000


def copy_database(source: Path, target: Path) -> None:
    """Copy by SQLite's own backup API. Raises sqlite3.Error.

    A read transaction is held over all steps: the copy is of that one moment, writers go on beside it, and what they
    write can't make it begin anew, as it would otherwise.
    """
    with closing(_opened(source)) as used, closing(sqlite3.connect(target)) as copy:
        used.execute("BEGIN")
        used.execute("SELECT count(*) FROM sqlite_master").fetchone()
        used.backup(copy, pages=STEP_PAGES, sleep=0)
        copy.execute("PRAGMA journal_mode=DELETE")


def check_copy(file: Path) -> None:
    """Run SQLite's own checks of a copy. Raises BadBackup."""
    try:
        with closing(_opened(file)) as database:
            faults = [row[0] for row in database.execute("PRAGMA integrity_check(3)") if row[0] != "ok"]
            faults += [f"{row[0]} row {row[1]} names a row that isn't there" for row in _strays(database)]
    except sqlite3.DatabaseError as error:
        faults = [str(error)]
    if faults:
        raise BadBackup(f"The database in it is damaged: {faults[0]}.")


def _strays(database: sqlite3.Connection) -> list[tuple[str, int]]:
    return database.execute("PRAGMA foreign_key_check").fetchmany(3)


def contents(file: Path) -> dict[str, Content]:
    """Return the rows of every table, by name, and their hash: over the rows as they are stored, by rowid.

    Search indexes are left out: they follow from the rows.
    """
    with closing(_opened(file)) as database:
        database.text_factory = bytes
        names = [name.decode() for (name,) in database.execute(_TABLES)]
        return {name: _content(database, name) for name in names}


_TABLES = """
    SELECT name FROM sqlite_master AS one WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
    AND sql NOT LIKE 'CREATE VIRTUAL%' AND NOT EXISTS (
        SELECT 1 FROM sqlite_master AS made WHERE made.sql LIKE 'CREATE VIRTUAL%'
        AND substr(one.name, 1, length(made.name) + 1) = made.name || '_'
    ) ORDER BY name
"""


def _content(database: sqlite3.Connection, table: str) -> Content:
    digest, count = hashlib.sha256(), 0
    quoted = table.replace('"', '""')
    rows = database.execute(f'SELECT * FROM "{quoted}" ORDER BY rowid')  # noqa: S608  a name out of the database
    while batch := rows.fetchmany(BATCH_ROWS):
        count += len(batch)
        digest.update("\n".join(map(repr, batch)).encode())
        digest.update(b"\n")
    return Content(count, digest.hexdigest())


def take_hold(file: Path) -> None:
    """Make sure that nobody else has the database open, and that all of it is in its one file. Raises Busy.

    Leaving WAL mode takes the file for itself alone, which SQLite refuses while any other connection is open.
    """
    if not file.exists():
        return
    try:
        with closing(_opened(file)) as database:
            database.execute("PRAGMA busy_timeout = 1000")
            database.execute("PRAGMA journal_mode=DELETE").fetchone()
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise Busy("Something else uses this database: stop it, and restore then.", code="hub_runs") from None
        raise Refused(f"The present database can't be put aside: {error}.", code="restore_refused") from error
    except sqlite3.DatabaseError:
        return  # it is damaged: it is put aside as it is


def replace_database(new: Path, file: Path, aside: Path) -> bool:
    """Let ``new`` take the database's place at one stroke; tell whether there was one, which is ``aside`` then.

    A log that a crash left beside it goes aside first: SQLite would read it into the new database.
    """
    there_was = file.exists()
    if there_was:
        for ending in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                Path(f"{file}{ending}").rename(f"{aside}{ending}")
        try:
            os.link(file, aside)
        except OSError:  # a file system without links
            shutil.copy2(file, aside)
    new.chmod(0o600)
    with new.open("rb") as handle:
        os.fsync(handle.fileno())
    new.replace(file)
    settle_folder(file.parent)
    return there_was


def settle_folder(folder: Path) -> None:
    """Make names that were given in a folder last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True, timeout=20, isolation_level=None)
