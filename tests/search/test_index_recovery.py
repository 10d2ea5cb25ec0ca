"""Search indexes after aborted inserts, killed processes, migrations and damage."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.db.backends.utils import CursorWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.models import CharField

from knowledge_app.models import KnowledgeEntry
from memoryhub.integrity import check_memory
from memoryhub.lib.search.index_maintenance import bulk_indexing, optimize, rebuild
from memoryhub.lib.search.indexes import GUARD_TABLE, index_name, trigger_names
from memoryhub.lib.search.operations import indexes, remove_sql
from memoryhub.lib.search.postgres_index import COLUMN, FUNCTIONS
from memoryhub.lib.search.sqlite_index import rebuild_sql
from sessions_app.models import Entry, IndexGuard
from tests.hub import open_at, talk
from tests.other_hub import manage, other_hub
from tests.search.test_index import WORDS, disagreeing, entries_of, holding
from tests.searches import know, texts

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = ROOT / "tests" / "samples" / "nanobot-0.1"
FIRST = [("knowledge_app", "0001_initial"), ("sessions_app", "0001_initial")]
only_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="of SQLite's own kind of index")
only_postgres = pytest.mark.skipif(connection.vendor != "postgresql", reason="of PostgreSQL's own kind of index")


def test_an_aborted_bulk_insert_leaves_nothing(workspace):
    session = open_at(workspace)

    def break_off() -> None:
        with bulk_indexing(connection, Entry._meta.db_table):
            Entry.objects.bulk_create(entries_of(session, "an orchid"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        break_off()

    assert not Entry.objects.exists()
    assert not IndexGuard.objects.exists()
    assert holding(Entry, "orchid") == []
    assert disagreeing() == {}
    Entry.objects.bulk_create(entries_of(session, "an orchid"))
    assert len(holding(Entry, "orchid")) == 1


DIES = """
import os, signal, django
django.setup()
from django.db import connection
from memoryhub.lib.search.index_maintenance import bulk_indexing
from sessions_app.models import Entry, Session
session = Session.objects.get()
rows = [
    Entry(workspace=session.workspace, session=session, position=place, kind="message", role="user",
          content="an orchid", token_count=1, source_hash="x")
    for place in range(100)
]
with bulk_indexing(connection, Entry._meta.db_table):
    Entry.objects.bulk_create(rows)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_killed_bulk_insert_leaves_nothing(workspace):
    open_at(workspace)
    values = connection.settings_dict
    where = "{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**values)
    url = f"sqlite:///{values['NAME']}" if connection.vendor == "sqlite" else f"postgres://{where}"
    env = os.environ | {"DJANGO_SETTINGS_MODULE": "memoryhub.settings", "DATABASE_URL": url}

    done = subprocess.run(
        [sys.executable, "-c", DIES], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )

    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not Entry.objects.exists()
    assert not IndexGuard.objects.exists()
    talk(open_at(workspace), 40)
    assert len(holding(Entry, "request")) == 40
    assert disagreeing() == {}


class Hub:
    """A separate hub with its own database in a folder."""

    def __init__(self, home: Path) -> None:
        self.file = home / "memoryhub.sqlite3"
        self.env = os.environ | {"MEMORYHUB_HOME": str(home), "DATABASE_URL": "", "MEMORYHUB_QUIET_SECONDS": "0"}
        self.env.pop("DJANGO_SETTINGS_MODULE", None)

    def run(self, *arguments: str) -> str:
        return manage(self.file.parent, str(self.file), *arguments)

    def ask(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run(*arguments, "--json"))
        return found

    def count(self, sql: str) -> int:
        with open_file(self.file) as raw:
            return int(raw.execute(sql).fetchone()[0])


@contextmanager
def open_file(path: Path) -> Iterator[sqlite3.Connection]:
    raw = sqlite3.connect(path, timeout=20)
    try:
        yield raw
    finally:
        raw.close()


@pytest.fixture
def hub(tmp_path, new_database) -> Hub:
    home = tmp_path / "home"
    home.mkdir()
    hub = Hub(home)
    new_database(hub.file)
    return hub


@pytest.mark.slow
@pytest.mark.postgres
@only_sqlite
@pytest.mark.django_db(transaction=True)
def test_a_killed_import_leaves_index_and_rows_consistent(hub, tmp_path):
    folder = tmp_path / "agent" / "sessions"
    folder.mkdir(parents=True)
    for number in range(30):
        rows = [{"_type": "metadata", "created_at": "2026-03-01T08:00:00", "metadata": {}}]
        rows += [{"role": "user", "content": f"orchid {number} {place}"} for place in range(100)]
        (folder / f"cli_{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, "manage.py", "import_workspace", str(folder.parent)]
    entries = "SELECT count(*) FROM sessions_app_entry"

    with subprocess.Popen(command, cwd=ROOT, env=hub.env, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not hub.count(entries):
            time.sleep(0.01)
        process.kill()

    assert process.returncode == -signal.SIGKILL
    assert 0 < hub.count(entries) < 3000
    assert hub.ask("check_memory")["broken"] == []
    assert all(not one["faults"] for one in hub.ask("rebuild_search", "--check")["indexes"])
    hub.run("import_workspace", str(folder.parent))
    assert hub.count(entries) == hub.count(f"{entries}_words WHERE sessions_app_entry_words MATCH 'orchid'") == 3000
    assert hub.ask("check_memory")["broken"] == []


@pytest.mark.slow
@pytest.mark.postgres
@only_sqlite
@pytest.mark.django_db(transaction=True)
def test_migrations_can_be_reversed_and_reapplied_with_rows(hub):
    named = ("%\\_words", "%\\_index\\_%")
    like = " OR ".join(f"name LIKE '{one}' ESCAPE '\\'" for one in named)
    made = f"SELECT count(*) FROM sqlite_master WHERE {like}"
    hub.run("import_workspace", str(SAMPLE))
    before = hub.ask("search", "the")["results"]
    assert before
    assert hub.count(made) == 5 * len(WORDS)

    with other_hub(hub.file.parent, str(hub.file)):
        MigrationExecutor(connection).migrate(FIRST)
    assert hub.count(made) == hub.count("SELECT count(*) FROM sqlite_master WHERE type = 'view'") == 0
    assert hub.count("SELECT count(*) FROM sessions_app_entry") == 7

    hub.run("migrate", "--verbosity", "0")
    assert hub.count(made) == 5 * len(WORDS)
    assert hub.ask("search", "the")["results"] == before
    assert all(not one["faults"] for one in hub.ask("rebuild_search", "--check")["indexes"])


def test_an_index_without_folded_dotless_i_is_rebuilt_by_a_migration(workspace):
    row, table = know(workspace, "sıcak"), KnowledgeEntry._meta.db_table
    talk(open_at(workspace), 1)
    with connection.cursor() as cursor:
        for sql in before_dotless_i(cursor, table):
            cursor.execute(sql)
    assert holding(KnowledgeEntry, "sicak") == []

    for operation in import_module("knowledge_app.migrations.0018_search_dotless_i").Migration.operations:
        operation.database_forwards("knowledge_app", connection.SchemaEditorClass(connection), None, None)

    assert holding(KnowledgeEntry, "sicak") == [row.pk]
    assert len(holding(Entry, "request")) == 1
    assert disagreeing() == {}


@only_postgres
def test_every_index_sorts_new_rows_in_early():
    sql = "SELECT relname FROM pg_class WHERE relkind = 'i' AND reloptions = ARRAY['gin_pending_list_limit=256']"
    with connection.cursor() as cursor:
        cursor.execute(sql)
        assert {name for (name,) in cursor.fetchall()} == {index_name(index.table) for index in indexes(connection)}


def before_dotless_i(cursor: CursorWrapper, table: str) -> list[str]:
    """Return the statements that fill a table's index as it was before ı was indexed as i."""
    if connection.vendor == "sqlite":
        cursor.execute("SELECT sql FROM sqlite_master WHERE name = %s", [f"{table}_source"])
        view = cursor.fetchone()[0].replace("'ı', 'i'", "'ı', 'ı'")
        return [f"DROP VIEW {table}_source", view, rebuild_sql(table)]
    folded = FUNCTIONS[0].replace("'ςı', 'σi'", "'ς', 'σ'")
    return ["SET CONSTRAINTS ALL IMMEDIATE", folded, f"UPDATE {table} SET content = content"]


@only_sqlite
@pytest.mark.django_db(transaction=True)
def test_altering_an_indexed_table_without_dropping_its_index_is_refused(hub):
    old, new = KnowledgeEntry._meta.get_field("source"), CharField(max_length=10)
    new.set_attributes_from_name("source")
    new.model = KnowledgeEntry

    with (
        other_hub(hub.file.parent, str(hub.file)),
        pytest.raises(DatabaseError, match="error in view knowledge_app_knowledgeentry_source"),
        connection.schema_editor() as editor,
    ):
        editor.alter_field(KnowledgeEntry, old, new)
    assert all(not one["faults"] for one in hub.ask("rebuild_search", "--check")["indexes"])


@only_postgres
def test_altering_an_indexed_column_without_dropping_its_index_is_refused_on_postgresql():
    with pytest.raises(DatabaseError, match="generated column"), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE knowledge_app_knowledgeentry ALTER COLUMN source TYPE varchar(10)")


@only_postgres
def test_migrations_can_be_reversed_and_reapplied_with_rows_on_postgresql(workspace):
    talk(open_at(workspace), 2)
    row = know(workspace, "an orchid")
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    columns = f"SELECT count(*) FROM information_schema.columns WHERE column_name = '{COLUMN}'"
    named = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'memoryhub%'"

    MigrationExecutor(connection).migrate(FIRST)
    with connection.cursor() as cursor:
        for sql in (columns, named):
            cursor.execute(sql)
            assert cursor.fetchone() == (0,)

    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    assert holding(KnowledgeEntry, "orchid") == [row.pk]
    assert len(holding(Entry, "request")) == 2
    assert disagreeing() == {}


@only_sqlite
def test_a_missing_trigger_is_detected_and_repaired(workspace, command):
    row = know(workspace, "an orchid")
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {trigger_names('knowledge_app_knowledgeentry')[3]}")
    KnowledgeEntry.objects.filter(pk=row.pk).update(content="a tulip")

    told = command("rebuild_search", "--check", status=1)["indexes"]
    assert [one["table"] for one in told if one["faults"]] == ["knowledge_app_knowledgeentry"]
    assert ("search.indexes", "knowledge_app_knowledgeentry") in broken()

    command("rebuild_search")
    assert command("rebuild_search", "--check")["indexes"] == [
        {"table": index.table, "faults": [], "rebuilt": False} for index in indexes(connection)
    ]
    assert texts("tulip", workspace) == ["a tulip"]
    assert texts("orchid", workspace) == []
    assert broken() == set()


@only_sqlite
def test_an_inconsistent_index_is_detected_and_repaired(workspace, command):
    table = KnowledgeEntry._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {GUARD_TABLE} (indexed_table, last_id) VALUES (%s, 0)", [table])
        know(workspace, "an orchid")
        cursor.execute(f"DELETE FROM {GUARD_TABLE}")

    assert disagreeing() == {table: ["the search index disagrees with the rows: run rebuild_search"]}
    assert broken() == {("search.indexes", table)}
    command("rebuild_search", "--check", status=1)
    command("rebuild_search")
    assert disagreeing() == {}
    assert texts("orchid", workspace) == ["an orchid"]


def test_a_missing_index_is_detected_and_repaired(workspace, command):
    know(workspace, "an orchid")
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for statement in remove_sql(connection, "knowledge_app_knowledgeentry"):
            cursor.execute(statement)

    command("rebuild_search", "--check", status=1)
    assert broken() == {("search.indexes", "knowledge_app_knowledgeentry")}

    command("rebuild_search")
    command("rebuild_search", "--check")
    assert texts("orchid", workspace) == ["an orchid"]


def broken() -> set[tuple[str, str]]:
    return {(one.invariant, one.where) for one in check_memory().broken if one.invariant == "search.indexes"}


def test_a_leftover_guard_is_reported(workspace):
    IndexGuard.objects.create(indexed_table="sessions_app_entry")

    assert "append_only.guard" in {one.invariant for one in check_memory().broken}


def test_vacuum_and_rebuild_keep_the_index(workspace):
    row = know(workspace, "an orchid")
    if connection.vendor == "postgresql":  # the test's transaction defers it
        connection.check_constraints()

    for index in indexes(connection):
        rebuild(connection, index)
        optimize(connection, index)

    assert holding(KnowledgeEntry, "orchid") == [row.pk]
    assert disagreeing() == {}
