"""Dump and restore a PostgreSQL database with pg_dump and pg_restore."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from memoryhub.backups.archive import CACHE_TABLES, SESSION_TABLES, BadBackup, Content
from memoryhub.backups.errors import BackupFailed
from memoryhub.lib.errors import Busy, Refused
from memoryhub.lib.process_locks import APPLICATION as LOCK_APPLICATION

EMPTY = Content(0, hashlib.sha256().hexdigest())
LOCK_SECONDS = 60  # that a dump waits for a locked table
CLOSING_SECONDS = 2.0  # in which connections that were just closed disappear
_OWN_OBJECTS = re.compile(r"\w+_no_(update|delete|truncate)(\(\))?$|^memoryhub_\w+\(.*\)$")
_SESSION = """
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
    SET LOCAL idle_in_transaction_session_timeout = 0;
    SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601';
    SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1
"""
_COLUMNS = """
    SELECT c.table_name, c.column_name FROM information_schema.columns c
    JOIN pg_tables t ON t.schemaname = c.table_schema AND t.tablename = c.table_name
    WHERE c.table_schema = current_schema() AND c.is_generated = 'NEVER' ORDER BY c.table_name, c.ordinal_position
"""
_KEYS = """
    SELECT t.relname, a.attname, a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
    FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = ANY (i.indkey)
    WHERE i.indisprimary AND t.relnamespace = current_schema()::regnamespace ORDER BY t.relname, a.attnum
"""


def dump_database(database: BaseDatabaseWrapper, target: Path) -> dict[str, Content]:
    """Run pg_dump; return the content of its tables, read from the same snapshot. Raises BackupFailed."""
    program = _program("pg_dump", database)
    with _snapshot(database) as cursor:
        cursor.execute("SELECT pg_export_snapshot(), current_schema()")
        snapshot, schema = cursor.fetchone()
        arguments = ["--format=custom", "--compress=0", "--no-owner", "--no-privileges", "--no-password"]
        arguments += [f"--exclude-table-data={schema}.{table}" for table in SESSION_TABLES + CACHE_TABLES]
        arguments += [f"--lock-wait-timeout={LOCK_SECONDS}s"]
        arguments += [f"--schema={schema}", f"--snapshot={snapshot}", f"--file={target}"]
        _run(database, [program, *arguments])
        found = _contents(cursor)
        caches = [table for table in CACHE_TABLES if table in found]
        return found | dict.fromkeys([*SESSION_TABLES, *caches], EMPTY)


def contents(database: BaseDatabaseWrapper) -> dict[str, Content]:
    """Return the number of rows of each table, and the hash of their COPY output ordered by primary key.

    Generated columns are left out.
    """
    with _snapshot(database) as cursor:
        return _contents(cursor)


@contextmanager
def _snapshot(database: BaseDatabaseWrapper) -> Iterator[Any]:
    """Yield a cursor in a repeatable-read transaction on a new connection without an idle timeout."""
    own = database.copy()
    own.settings_dict = {**own.settings_dict, "CONN_MAX_AGE": 0}
    own.set_autocommit(False)
    try:
        with own.wrap_database_errors, own.cursor() as cursor:
            for statement in _SESSION.split(";"):
                cursor.execute(statement)
            yield cursor
    finally:
        own.rollback()
        own.close()


def _contents(cursor: Any) -> dict[str, Content]:
    cursor.execute(_KEYS)
    keys: dict[str, list[str]] = {}
    for table, column, is_number in cursor.fetchall():
        keys.setdefault(table, []).append(_quoted(column) + ("" if is_number else '::text COLLATE "C"'))
    cursor.execute(_COLUMNS)
    columns: dict[str, list[str]] = {}
    for table, column in cursor.fetchall():
        columns.setdefault(table, []).append(_quoted(column))
    return {table: _content(cursor, table, names, keys.get(table, names)) for table, names in columns.items()}


def _content(cursor: Any, table: str, columns: list[str], keys: list[str]) -> Content:
    rows = f"SELECT {', '.join(columns)} FROM {_quoted(table)} ORDER BY {', '.join(keys)}"  # noqa: S608  names from the catalog
    digest = hashlib.sha256()
    with cursor.copy(f"COPY ({rows}) TO STDOUT") as copied:
        for chunk in copied:
            digest.update(chunk)
    cursor.execute(f"SELECT count(*) FROM {_quoted(table)}")  # noqa: S608
    return Content(cursor.fetchone()[0], digest.hexdigest())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def check_dump(database: BaseDatabaseWrapper, dump: Path, tables: dict[str, Content]) -> None:
    """Check that pg_restore lists every table in the dump. Raises BackupFailed, BadBackup."""
    try:
        listed = _run(database, [_program("pg_restore", database, may_be_older=True), "--list", str(dump)])
    except BackupFailed as error:
        raise BadBackup(f"The dump in the backup can't be read: {error.message}") from error
    _check_objects(listed)
    found = set(re.findall(r"^\d+; \d+ \d+ TABLE DATA \S+ (\S+) ", listed, re.MULTILINE))
    missing = sorted(name for name in set(tables) - found if tables[name] != EMPTY)
    if missing:
        raise BadBackup(f"The dump in the backup lacks the table {missing[0]}.")


def _check_objects(listed: str) -> None:
    """Refuse objects in a dump that the migrations don't create. Raises BadBackup."""
    kinds = (
        "TRIGGER|FUNCTION|PROCEDURE|AGGREGATE|VIEW|MATERIALIZED VIEW|RULE|EVENT TRIGGER|FOREIGN TABLE|CAST|OPERATOR"
    )
    for kind, name in re.findall(rf"^\d+; \d+ \d+ ({kinds}) \S+ (.*) \S+$", listed, re.MULTILINE):
        if kind not in ("TRIGGER", "FUNCTION") or not _OWN_OBJECTS.search(name):
            raise BadBackup(f"The database in the backup has an unknown {kind.lower()}: {name}.")


def has_tables(database: BaseDatabaseWrapper) -> bool:
    with database.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema())")
        return bool(cursor.fetchone()[0])


def require_exclusive_access(database: BaseDatabaseWrapper) -> None:
    """Check that nobody else is connected to the database. Raises Busy.

    PostgreSQL still lists a connection for a moment after it was closed, so others get two seconds to disappear.
    """
    deadline = time.monotonic() + CLOSING_SECONDS
    while (others := _count_others(database)) and time.monotonic() < deadline:
        time.sleep(0.05)
    if others:
        connections = f"{others} other connection{'s use' if others > 1 else ' uses'} this database"
        raise Busy(f"{connections}. Stop the hub, its workers and other clients, then restore.", code="hub_runs")


def _count_others(database: BaseDatabaseWrapper) -> int:
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # within a transaction, the list is read once otherwise
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND application_name <> %s",
            [LOCK_APPLICATION],
        )
        return int(cursor.fetchone()[0])


def replace_database(database: BaseDatabaseWrapper, dump: Path, aside: str) -> bool:
    """Restore a dump in one transaction; return whether there was a schema before, renamed to ``aside``.

    If restoring fails, the previous schema is put back. Raises Refused.
    """
    program = _program("pg_restore", database)
    had_database = has_tables(database)
    with database.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        schema = cursor.fetchone()[0]
    if had_database:
        _execute(
            database, f"ALTER SCHEMA {_quoted(schema)} RENAME TO {_quoted(aside)}; CREATE SCHEMA {_quoted(schema)}"
        )
    arguments = ["--no-owner", "--no-privileges", "--no-password", "--single-transaction", "--exit-on-error"]
    try:
        name = database.settings_dict["NAME"]
        _run(database, [program, *arguments, f"--schema={schema}", f"--dbname={name}", str(dump)])
    except BackupFailed as error:
        roll_back(database, aside, had_database)
        raise Refused(f"PostgreSQL refused the backup: {error.message}", code="restore_refused") from error
    return had_database


def roll_back(database: BaseDatabaseWrapper, aside: str, had_database: bool) -> None:  # noqa: FBT001
    """Drop the restored schema and rename the previous one back."""
    with database.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        schema = _quoted(cursor.fetchone()[0])
    instead = f"ALTER SCHEMA {_quoted(aside)} RENAME TO {schema}" if had_database else f"CREATE SCHEMA {schema}"
    _execute(database, f"DROP SCHEMA {schema} CASCADE; {instead}")


def _execute(database: BaseDatabaseWrapper, statements: str) -> None:
    try:
        with database.cursor() as cursor:
            cursor.execute(statements)
    except DatabaseError as error:
        first_line = str(error).strip().partition("\n")[0]
        raise Refused(
            f"The present schema can't be renamed ({first_line}). The hub's role must own the database.",
            code="restore_refused",
        ) from error


def _program(name: str, database: BaseDatabaseWrapper, *, may_be_older: bool = False) -> str:
    """Return the path of a PostgreSQL program. Raises BackupFailed if it is missing or older than the server."""
    found = shutil.which(name)
    if found is None:
        raise BackupFailed(
            f"{name} isn't installed: install PostgreSQL's client programs "
            "(on Debian and Ubuntu: apt install postgresql-client)."
        )
    if may_be_older:
        return found
    version = re.search(r"\b(\d+)(?:\.\d+)*\b", _run(database, [found, "--version"]))
    server: int = database.pg_version // 10_000  # type: ignore[attr-defined]
    if version and int(version[1]) < server:
        raise BackupFailed(
            f"{name} {version[1]} is older than the server: install the programs of PostgreSQL {server}."
        )
    return found


def _run(database: BaseDatabaseWrapper, command: list[str]) -> str:
    """Run a PostgreSQL program; pass the connection details and password only in its environment."""
    done = subprocess.run(  # noqa: S603
        command, env=_environment(database), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"status {done.returncode}"]
        raise BackupFailed(f"{Path(command[0]).name} failed: {lines[0]:.300}")
    return done.stdout


def _environment(database: BaseDatabaseWrapper) -> dict[str, str]:
    values = database.settings_dict
    options = values.get("OPTIONS", {})
    wanted = {
        "PGHOST": values["HOST"],
        "PGPORT": values["PORT"],
        "PGUSER": values["USER"],
        "PGPASSWORD": values["PASSWORD"],
        "PGDATABASE": values["NAME"],
        "PGSSLMODE": options.get("sslmode"),
        "PGSSLROOTCERT": options.get("sslrootcert"),
        "PGSSLCERT": options.get("sslcert"),
        "PGSSLKEY": options.get("sslkey"),
    }
    given = {name: str(value) for name, value in wanted.items() if value}
    return {"PATH": os.defpath, "HOME": str(Path.home()), "LC_ALL": "C", "PGCONNECT_TIMEOUT": "10", **given}
