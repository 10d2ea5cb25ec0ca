"""Compare the schema of a backup with the one that the migrations create: a trigger could change rows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing
from functools import cache
from pathlib import Path

from django.conf import settings

from memoryhub.backups import sqlite
from memoryhub.backups.archive import BadBackup, Manifest
from memoryhub.backups.errors import BackupFailed
from memoryhub.lib.database.migrations import pending_migrations

_OBJECTS = """
    SELECT type, name, tbl_name, sql FROM sqlite_master
    WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'
"""
_OWN_NAMES = re.compile(r"\w+_(no_(update|delete|replace)|index_(new|old|gone|changed)|source|batch|words)")
Schema = dict[tuple[str, str], Counter[str]]


def check_schema(file: Path, manifest: Manifest) -> None:
    """Check the triggers, views, virtual tables and columns of an SQLite database. Raises BadBackup, BackupFailed.

    A backup that needs migrations may contain older versions of them, so only their names are checked.
    """
    found, columns = read_schema(file)
    if pending_migrations(set(manifest.migrations)):
        unknown = [name for kind, name in found if not _OWN_NAMES.fullmatch(name)]
    else:
        expected, expected_columns = expected_schema()
        unknown = [name for (kind, name), sql in found.items() if expected.get((kind, name)) != sql]
        unknown += [name for name, names in expected_columns.items() if columns.get(name) != names]
    if unknown:
        raise BadBackup(f"The database in the backup has an unknown or changed trigger, view or table: {unknown[0]}.")


def read_schema(file: Path) -> tuple[Schema, dict[str, set[str]]]:
    """Return the words of each trigger, view and virtual table, and the columns of each table.

    Words are counted and not compared in order: the order of columns depends on when migrations added them.
    """
    with closing(sqlite.connect(file)) as database:
        objects = database.execute(_OBJECTS).fetchall()
        rows = database.execute(
            "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'"
        )
        columns: dict[str, set[str]] = {}
        for table, column in rows:
            columns.setdefault(table, set()).add(column)
    return {
        (kind, name): Counter(re.findall(r"\w+|[^\w\s]", f"{table} {sql}")) for kind, name, table, sql in objects
    }, columns


@cache
def expected_schema() -> tuple[Schema, dict[str, set[str]]]:
    """Return the schema that the migrations create, in a temporary database of another process; cached."""
    with tempfile.TemporaryDirectory(prefix="memoryhub-schema-") as folder:
        file = Path(folder, "schema.sqlite3")
        own = {"DJANGO_SETTINGS_MODULE": "memoryhub.settings", "DATABASE_URL": f"sqlite:///{file}"}
        done = subprocess.run(
            [sys.executable, "-m", "django", "migrate", "--verbosity", "0"],
            cwd=settings.BASE_DIR,
            env={"PATH": os.defpath, "HOME": folder, "MEMORYHUB_HOME": folder, **own},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            last_line = (done.stderr.strip().splitlines() or [""])[-1]
            raise BackupFailed(f"The expected schema can't be created: {last_line:.300}")
        return read_schema(file)
