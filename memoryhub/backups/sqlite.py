"""Copy, verify and replace an SQLite database."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from memoryhub.backups.archive import CACHE_TABLES, SESSION_TABLES, BadBackup, Content
from memoryhub.lib.errors import Busy, Refused

STEP_PAGES = 4_096  # 16 MB at a time
BATCH_ROWS = 1_000


def copy_database(source: Path, target: Path) -> None:
    """Copy a database with SQLite's backup API. Raises sqlite3.Error.

    A read transaction is held over all steps. So the copy is a snapshot, writers can continue, and their writes don't
    make the backup API start over.
    """
    with closing(connect(source)) as used, closing(sqlite3.connect(target)) as copy:
        used.execute("BEGIN")
        used.execute("SELECT count(*) FROM sqlite_master").fetchone()
        used.backup(copy, pages=STEP_PAGES, sleep=0)
        copy.execute("PRAGMA journal_mode=DELETE")


def delete_sessions(file: Path) -> None:
    """Delete login sessions and caches from a copy, and overwrite them with zeros."""
    with closing(connect(file)) as copy:
        copy.execute("PRAGMA secure_delete=ON")
        tables = {name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in tables.intersection(SESSION_TABLES + CACHE_TABLES):
            copy.execute(f"DELETE FROM {table}")  # noqa: S608  our own names


def check_copy(file: Path) -> None:
    """Run SQLite's integrity and foreign key checks. Raises BadBackup."""
    try:
        with closing(connect(file)) as database:
            faults = [row[0] for row in database.execute("PRAGMA integrity_check(3)") if row[0] != "ok"]
            faults += [f"{row[0]} row {row[1]} references a missing row" for row in _foreign_key_faults(database)]
    except sqlite3.DatabaseError as error:
        faults = [str(error)]
    if faults:
        raise BadBackup(f"The database in the backup is damaged: {faults[0]}.")


def _foreign_key_faults(database: sqlite3.Connection) -> list[tuple[str, int]]:
    return database.execute("PRAGMA foreign_key_check").fetchmany(3)


def contents(file: Path) -> dict[str, Content]:
    """Return the number of rows of each table, and the hash of its rows as stored, ordered by rowid.

    Search indexes are left out: they are derived from the rows.
    """
    with closing(connect(file)) as database:
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
    rows = database.execute(f'SELECT * FROM "{quoted}" ORDER BY rowid')  # noqa: S608  a name from the schema
    while batch := rows.fetchmany(BATCH_ROWS):
        count += len(batch)
        digest.update("\n".join(map(repr, batch)).encode())
        digest.update(b"\n")
    return Content(count, digest.hexdigest())


def require_exclusive_access(file: Path) -> None:
    """Check that nobody else has the database open, and move its log into the file. Raises Busy.

    SQLite leaves WAL mode only while no other connection is open.
    """
    if not file.exists():
        return
    try:
        with closing(connect(file)) as database:
            database.execute("PRAGMA busy_timeout = 1000")
            database.execute("PRAGMA journal_mode=DELETE").fetchone()
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise Busy("Another process is using this database. Stop it, then restore.", code="hub_runs") from None
        raise Refused(f"The present database can't be moved aside: {error}.", code="restore_refused") from error
    except sqlite3.DatabaseError:
        return  # it is damaged, and moved aside as it is


def replace_database(new: Path, file: Path, aside: Path) -> bool:
    """Replace the database file atomically; return whether there was one before, moved to ``aside``.

    A write-ahead log left by a crash is moved first: SQLite would apply it to the new database.
    """
    had_database = file.exists()
    if had_database:
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
    fsync_folder(file.parent)
    return had_database


def fsync_folder(folder: Path) -> None:
    """Flush a folder, so that new file names survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def connect(file: Path) -> sqlite3.Connection:
    """Connect to a database whose schema isn't trusted: it may call no functions with side effects.

    Databases of commit 827a92b have constraints with JSON_VALID, which some versions of SQLite don't allow then.
    """
    database = sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True, timeout=20, isolation_level=None)
    database.execute("PRAGMA trusted_schema=OFF")
    try:
        database.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        if "unsafe use" in str(error):
            database.execute("PRAGMA trusted_schema=ON")
    return database
