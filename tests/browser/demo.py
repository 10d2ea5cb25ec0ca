"""The demo's agents in the database of a browser test, imported once in a process."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from memoryhub.demo import write_demo
from memoryhub.sync.importing import import_workspace
from sessions_app.services.audit import Actor, By
from tests.conftest import tables_with_rows


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture
def demo(transactional_db: None, demo_home: Path) -> None:
    """Import the demo's agents. On SQLite, later tests get a copy of the rows, which takes a tenth of the time."""
    kept = demo_home / "rows.sqlite3"
    if kept.exists():
        copy_rows(kept)
        return
    with connection.cursor() as cursor:
        others = tables_with_rows(cursor)
    for name, folder in write_demo(demo_home, today=date(2026, 3, 20)).items():
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
