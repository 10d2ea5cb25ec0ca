"""Read the SQLite stores of programs that may be running, without blocking or changing them.

A store is never queried in place. A private copy is made first, its schema is reduced to plain tables, and only these
are read: nothing that the store's schema defines can run.

A store with a write-ahead log in use is copied by SQLite's backup API, over a connection that doesn't write to the
log's shared memory. Any other store is copied byte by byte with its log and journal, and again if it changed in the
meantime; SQLite then recovers the copy, as the program would. https://www.sqlite.org/wal.html#readonly
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from memoryhub.lib.database.sqlite_schema import simplify_schema
from memoryhub.lib.files.safe_folder import FileInfo, Folder, Stream, UnreadableFile
from memoryhub.lib.validation import clean_text

MAX_STORE_BYTES = 2 * 2**30
MAX_VALUE_BYTES = 64 * 2**20
SECONDS_PER_QUERY = 60.0
STEPS_BETWEEN_CHECKS = 10_000  # of SQLite's virtual machine
SETTLED_SECONDS = 0.05  # file times are coarser than writes: a younger file could change without a new time
LOG, JOURNAL, SHARED_MEMORY = "-wal", "-journal", "-shm"
NOT_A_STORE = "is not an SQLite database, or a damaged one"
OVER_TIME = "takes too long to read"

Row = dict[str, Any]


class DamagedText(str):
    """A text that isn't UTF-8, with the bytes that don't fit as ``\\xNN``."""

    __slots__ = ()


class Store:
    """A private copy of a store, open for reading.

    ``tables``: the names of the columns of each table. ``converted``: the number of values read so far that were
    bytes or no UTF-8 and became text, by table and column.
    """

    def __init__(self, connection: sqlite3.Connection, info: FileInfo) -> None:
        self._connection = connection
        self.info = info
        self.converted: Counter[str] = Counter()
        with _plain_errors(), _time_limit(connection):
            self.tables = dict(_tables(connection))
            self.version = int(connection.execute("PRAGMA user_version").fetchone()[0])

    def rows(
        self,
        table: str,
        columns: tuple[str, ...],
        *,
        where: Mapping[str, Any] | None = None,
        order: str = "",
        blobs: tuple[str, ...] = (),
    ) -> list[Row]:
        """Return the rows of a table as dictionaries, with None for columns that the table doesn't have.

        ``where``: values that columns must equal. ``order``: columns, separated by commas. Values are storable texts
        and numbers, except for bytes in the columns ``blobs``. No rows if the table or a column of ``where`` is
        missing. Raises UnreadableFile.
        """
        present = self.tables.get(table, ())
        where = where or {}
        if not present or not set(where) <= set(present):
            return []
        selected = [name for name in columns if name in present]
        ordered = [name for name in order.split(", ") if name in present]
        sql = f"SELECT {', '.join(map(_quoted, selected)) or 'NULL'} FROM {_quoted(table)}"  # noqa: S608
        if where:
            sql += " WHERE " + " AND ".join(f"{_quoted(name)} = ?" for name in where)
        if ordered:
            sql += f" ORDER BY {', '.join(map(_quoted, ordered))}"
        missing: Row = dict.fromkeys(columns)
        with _plain_errors(), _time_limit(self._connection):
            found = self._connection.execute(sql, tuple(where.values())).fetchall()
        return [
            missing
            | {
                name: row[place] if name in blobs else self._storable(f"{table}.{name}", row[place])
                for place, name in enumerate(selected)
            }
            for row in found
        ]

    def _storable(self, column: str, value: Any) -> str | int | float | None:
        self.converted[column] += isinstance(value, bytes | DamagedText)
        return _storable(value)

    def state(
        self, table: str, group: str, columns: tuple[str, ...], *, texts: tuple[str, ...] = ()
    ) -> dict[Any, str]:
        """Return a text for each value of ``group`` that changes with its rows: number, sums, maxima, lengths.

        Raises UnreadableFile.
        """
        present = self.tables.get(table, ())
        if group not in present:
            return {}
        parts = ["count(*)"]
        for name in columns:
            if name in present:
                parts += [f"max({_quoted(name)})", f"total({_quoted(name)})"]
        parts += [f"total(length({_quoted(name)}))" for name in texts if name in present]
        sql = f"SELECT {_quoted(group)}, {', '.join(parts)} FROM {_quoted(table)} GROUP BY 1"  # noqa: S608
        with _plain_errors(), _time_limit(self._connection):
            return {row[0]: ",".join(map(str, row[1:])) for row in self._connection.execute(sql)}


@contextmanager
def open_store(folder: Folder, path: str, *, limit: int = MAX_STORE_BYTES) -> Iterator[Store]:
    """Copy a store of up to ``limit`` bytes and open the copy. Raises UnreadableFile."""
    private = Path(tempfile.mkdtemp(prefix="memoryhub-store-"))
    try:
        stamp = store_stamp(folder, path)
        copy = private / "store.sqlite"
        _copy(folder, path, copy, limit)
        modified_ns = max(folder.modified_ns(path), folder.modified_ns(path + LOG))
        with _plain_errors(), closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.text_factory = _text
            with _time_limit(connection):
                simplify_schema(connection)
        with _plain_errors():
            connection = sqlite3.connect(copy, isolation_level=None)
        with closing(connection):
            with _plain_errors():
                _restrict(connection)
            size = copy.stat().st_size
            digest = hashlib.sha256(f"{stamp}/{size}".encode()).hexdigest()
            yield Store(connection, FileInfo(size, modified_ns, digest, stamp))
    finally:
        shutil.rmtree(private, ignore_errors=True)


def store_stamp(folder: Folder, path: str) -> str:
    """Return a text that changes with each write to a store; "" if it isn't a regular file."""
    stamps = [folder.stamp(path + part).rpartition("-")[0] for part in ("", LOG, JOURNAL)]  # without ctime: as root,
    # SQLite sets the owner of a log that it opens
    return hashlib.sha256("/".join(stamps).encode()).hexdigest() if stamps[0] else ""


def is_store(folder: Folder, path: str) -> bool:
    """Return whether a file begins like an SQLite database."""
    try:
        head, _ = folder.read(
            path, lambda stream: next(stream.chunks(), b"")[:16], limit=2**62, even_if_unchanged=True, no_wait=True
        )
    except UnreadableFile as error:
        return error.code == "unstable_file"  # being written to
    return head == b"SQLite format 3\0"


def _copy(folder: Folder, path: str, copy: Path, limit: int) -> None:
    if not folder.exists(path):
        raise UnreadableFile("does not exist")
    for part in (path, path + LOG, path + JOURNAL, path + SHARED_MEMORY):
        if folder.exists(part) and not folder.is_file(part):
            raise UnreadableFile(folder.skip_reason(part))
    _check_size(folder, path, copy, limit)
    if folder.is_file(path + LOG) and folder.is_file(path + SHARED_MEMORY):
        _back_up(folder, path, copy)
    else:
        _copy_bytes(folder, path, copy, limit)


def _check_size(folder: Folder, path: str, copy: Path, limit: int) -> None:
    size = sum(int(stamp.split("-")[1]) for part in (path, path + LOG) if (stamp := folder.stamp(part)))
    if size > limit:
        raise UnreadableFile(f"larger than the limit of {limit // 2**20:,} MB")
    if size + 2**20 > shutil.disk_usage(copy.parent).free:
        raise UnreadableFile(f"needs {size // 2**20 + 1:,} MB for a temporary copy, which the disk doesn't have")


def _back_up(folder: Folder, path: str, copy: Path) -> None:
    """Copy a store that a program may be writing to. SQLite opens it by its path, so its identity is checked."""
    source = folder.path.resolve() / path
    before = _identity(folder, path, source)
    uri = f"{source.as_uri()}?mode=ro&readonly_shm=1"
    with (
        _plain_errors(),
        closing(sqlite3.connect(uri, uri=True, timeout=5)) as live,
        closing(sqlite3.connect(copy)) as target,
    ):
        live.backup(target, pages=-1)
    if _identity(folder, path, source) != before:
        raise UnreadableFile("was replaced while it was read; the next import will try again", code="unstable_file")


def _identity(folder: Folder, path: str, source: Path) -> tuple[int, int]:
    """Return the device and inode of a store. Raises UnreadableFile if a link leads to another file."""
    parent, _, name = path.rpartition("/")
    try:
        with folder.handle(parent) as handle:
            own = os.stat(name, dir_fd=handle, follow_symlinks=False)
        found = source.stat()
    except OSError as error:
        raise UnreadableFile(f"can't be read: {error.strerror}") from error
    if (own.st_dev, own.st_ino) != (found.st_dev, found.st_ino):
        raise UnreadableFile("is a link; links are not followed")
    return own.st_dev, own.st_ino


def _copy_bytes(folder: Folder, path: str, copy: Path, limit: int) -> None:
    """Copy a store with its log and journal, at a moment in which none of them changes."""
    parts = ("", LOG, JOURNAL)
    for _ in range(3):
        stamps = [folder.stamp(path + part) for part in parts]
        age = time.time() - max(folder.modified_ns(path + part) for part in parts) / 1e9
        if 0 <= age < SETTLED_SECONDS:
            time.sleep(SETTLED_SECONDS)
        for part in parts:
            target = copy.with_name(copy.name + part)
            target.unlink(missing_ok=True)
            if folder.is_file(path + part):
                folder.read(path + part, _writer(target), limit=limit, even_if_unchanged=True)
        if stamps == [folder.stamp(path + part) for part in parts]:
            return
    raise UnreadableFile("kept changing while it was read; the next import will try again", code="unstable_file")


def _writer(target: Path) -> Any:
    def write(stream: Stream) -> None:
        with target.open("wb") as file:
            for chunk in stream.chunks():
                file.write(chunk)

    return write


def _restrict(connection: sqlite3.Connection) -> None:
    """Keep a hostile schema or file from running functions, writing, or using much memory."""
    connection.text_factory = _text
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "query_only = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return DamagedText(raw.decode(errors="backslashreplace"))


def _tables(connection: sqlite3.Connection) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name and the columns of each table."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for name in names:
        yield name, tuple(row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(name)})"))


def _storable(value: Any) -> str | int | float | None:
    """Return a value as both of the hub's databases can store it."""
    if isinstance(value, bytes):
        value = _text(value)
    if isinstance(value, str):
        return str(clean_text(value))
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _time_limit(connection: sqlite3.Connection) -> Iterator[None]:
    ends_at = time.monotonic() + SECONDS_PER_QUERY
    connection.set_progress_handler(lambda: time.monotonic() > ends_at, STEPS_BETWEEN_CHECKS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Raise SQLite's errors as UnreadableFile, with a sentence for the import report."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "interrupted" in text:
            raise UnreadableFile(OVER_TIME) from error
        if "locked" in text or "busy" in text:
            raise UnreadableFile(
                "is locked by its program; the next import will try again", code="unstable_file"
            ) from error
        if isinstance(error, sqlite3.DataError) or "too big" in text:
            raise UnreadableFile(f"contains a value of more than {MAX_VALUE_BYTES // 2**20} MB") from error
        raise UnreadableFile(f"{NOT_A_STORE} ({text})") from error
    except (OverflowError, UnicodeError, ValueError, MemoryError) as error:
        raise UnreadableFile(NOT_A_STORE) from error
