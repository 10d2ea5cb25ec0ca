"""The demo's agents in the database of a browser test, imported once for all processes."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from filelock import FileLock

from memoryhub.demo import write_demo
from memoryhub.sync.importing import import_workspace
from sessions_app.services.audit import Actor, By
from tests.conftest import tables_with_rows


@pytest.fixture
def demo(transactional_db: None) -> None:
    """Import the demo's agents. On SQLite, later tests get a copy of the rows, which takes a tenth of the time."""
    home = settings.SHARED_BY_PROCESSES / "demo"
    kept = home / "rows.sqlite3"
    with FileLock(home.with_suffix(".lock")):
        if not kept.exists():
            import_demo(home, kept)
            return
    copy_rows(kept)


def import_demo(home: Path, kept: Path) -> None:
    with connection.cursor() as cursor:
        others = tables_with_rows(cursor)
    for name, folder in write_demo(home, today=date(2026, 3, 20)).items():
        import_workspace(folder, by=By(Actor("command", "test"), timezone.now()), name=name)
    if connection.vendor == "sqlite":
        keep_rows(kept, others)


def keep_rows(place: Path, others: list[str]) -> None:
    """Copy the rows of all tables but the others to a new database."""
    with connection.cursor() as cursor:
        cursor.execute("ATTACH DATABASE %s AS kept", [str(place)])
        for table in tables_with_rows(cursor):
            if table not in others:
                cursor.execute(f"CREATE TABLE kept.{table} AS SELECT * FROM main.{table}")
        cursor.execute("DETACH DATABASE kept")


def copy_rows(place: Path) -> None:
    """Copy the rows back. Triggers add them to the search index."""
    with connection.cursor() as cursor:
        cursor.execute("ATTACH DATABASE %s AS kept", [str(place)])
        cursor.execute("SELECT name FROM kept.sqlite_master WHERE type = 'table'")
        tables = [table for (table,) in cursor.fetchall()]
        with transaction.atomic():
            for table in tables:
                cursor.execute("SELECT name FROM pragma_table_info(%s, 'main')", [table])
                columns = ", ".join(f'"{name}"' for (name,) in cursor.fetchall())
                cursor.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM kept.{table}")
        cursor.execute("DETACH DATABASE kept")
