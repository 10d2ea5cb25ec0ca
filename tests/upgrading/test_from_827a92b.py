"""Upgrading a database or a backup of commit 827a92b, whose migrations have been squashed since."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings as hub
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

from memoryhub.backups import sqlite
from memoryhub.backups.archive import content_of, digest_of, write_backup_file
from memoryhub.backups.schema import check_schema
from memoryhub.lib.database.migrations import is_too_old, pending_migrations, unknown_migrations
from memoryhub.lib.search.indexes import is_installed
from memoryhub.lib.search.postgres_index import COLUMN
from memoryhub.management.commands import serve
from tests.backups.databases import back_up
from tests.other_hub import manage
from tests.upgrading.schema import schema

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = ROOT / "tests" / "samples" / "827a92b"
TRANSFORMED = {  # tables whose rows a later migration changes or moves
    "django_migrations",
    "django_tasks_database_dbtaskresult",
    "memoryhub_job",
    "sessions_app_importreport",
    "sessions_app_syncstate",
    "sessions_app_webhookdelivery",
}
if connection.vendor == "postgresql":
    TRANSFORMED.add("sessions_app_dailytotal")  # its sums are kept
GROWING = {"django_migrations", "django_content_type", "auth_permission"}  # `migrate` adds rows to these
LEFT_OVER: frozenset[str] = frozenset()  # objects of the old schema that a new database no longer has
HOME = "/srv/memoryhub"  # of the sample's hub

only_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="a file of SQLite")

Rows = Counter[tuple[Any, ...]]
Tables = dict[str, tuple[list[str], Rows]]


@dataclass(frozen=True)
class Upgraded:
    home: Path
    database: BaseDatabaseWrapper
    before: Tables
    after: Tables

    def run(self, *arguments: str) -> str:
        return manage(self.home, self.database.settings_dict["NAME"], *arguments)

    def ask(self, *arguments: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.run(*arguments, "--json"))
        return document


@pytest.fixture(scope="module")
def upgraded(django_db_setup, django_db_blocker, tmp_path_factory) -> Iterator[Upgraded]:
    """Migrate the sample. Tests may then use the database without ``db``, and so run together."""
    home = tmp_path_factory.mktemp("home")
    with django_db_blocker.unblock():
        database = connection.copy()
        database.settings_dict = {**connection.settings_dict, **_load(home)}
        before = _tables(database)
        database.close()
        manage(home, database.settings_dict["NAME"], "migrate", "--verbosity", "0")
        kept = {table: columns for table, (columns, _) in before.items() if table not in TRANSFORMED}
        after = _tables(database, kept)
        yield Upgraded(home, database, before, after)
        database.close()
        if database.vendor == "postgresql":
            with closing(connection.copy()) as other, other.cursor() as cursor:
                cursor.execute(f'DROP DATABASE "{database.settings_dict["NAME"]}"')


def _load(home: Path) -> dict[str, Any]:
    """Load the sample into a new database; return its settings."""
    text = gzip.decompress((SAMPLE / f"{connection.vendor}.sql.gz").read_bytes()).decode()
    if connection.vendor == "sqlite":
        file = home / "memoryhub.sqlite3"
        with closing(sqlite3.connect(file)) as raw:
            raw.executescript(text)
        return {"NAME": str(file)}
    name = f"{connection.settings_dict['NAME']}_upgraded"
    with closing(connection.copy()) as own, own.cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')
        cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
    with closing(connection.copy()) as own:
        own.settings_dict = {**connection.settings_dict, "NAME": name}
        with own.cursor() as cursor:
            cursor.execute(text)
    return {"NAME": name}


def _tables(database: BaseDatabaseWrapper, columns: dict[str, list[str]] | None = None) -> Tables:
    """Return the rows of all tables, without those and the columns that search indexes consist of."""
    found: Tables = {}
    with database.cursor() as cursor:
        for table in database.introspection.table_names(cursor):
            if "_words" in table:
                continue
            described = database.introspection.get_table_description(cursor, table)
            names = (columns or {}).get(table) or [column.name for column in described if column.name != COLUMN]
            cursor.execute(f"SELECT {', '.join(map(database.ops.quote_name, names))} FROM {table}")
            found[table] = names, Counter(tuple(map(_plain, row)) for row in cursor.fetchall())
    return found


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def test_the_sample_holds_rows_and_pending_work(upgraded):
    count = {table: rows.total() for table, (_, rows) in upgraded.before.items()}

    assert count["sessions_app_entry"] > 400
    assert count["django_tasks_database_dbtaskresult"] == 5
    assert count["memoryhub_job"] == 4
    assert min(count[f"sessions_app_{name}"] for name in ("syncstate", "webhookdelivery", "run", "importreport")) > 0


def test_upgrading_keeps_every_row(upgraded):
    kept = upgraded.before.keys() - TRANSFORMED
    before, after = ({table: tables[table][1] for table in kept} for tables in (upgraded.before, upgraded.after))

    assert {table: gone for table in kept if (gone := before[table] - after[table])} == {}
    assert {table for table in kept if after[table] - before[table]} <= GROWING


def test_the_totals_of_each_day_are_kept(upgraded):
    sums = {}
    for when, tables in (("before", upgraded.before), ("after", upgraded.after)):
        names, rows = tables["sessions_app_dailytotal"]
        added: Counter[tuple[Any, ...]] = Counter()
        for row in rows.elements():
            values = dict(zip(names, row, strict=True))
            place = tuple(values[name] for name in ("workspace_id", "session_id", "day", "kind"))
            for name in ("entry_count", "token_count", "active_token_count"):
                added[*place, name] += values[name]
        sums[when] = added

    assert sums["before"] == sums["after"]
    assert sums["before"].total() > 0


def test_an_upgraded_database_has_the_schema_of_a_new_one(upgraded):
    old, new = schema(upgraded.database), schema(connection)

    assert set(old) - LEFT_OVER == set(new)
    assert {name: (old[name], new[name]) for name in new if old[name] != new[name]} == {}


def rows_of(upgraded: Upgraded, query: str) -> list[tuple[Any, ...]]:
    with upgraded.database.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def test_all_pending_work_becomes_jobs(upgraded):
    jobs = rows_of(
        upgraded, "SELECT kind, status, requested_by, options, attempt_count FROM memoryhub_job ORDER BY id"
    )
    found = {kind: [job[1:] for job in jobs if job[0] == kind] for kind, *_ in jobs}
    reports = rows_of(upgraded, "SELECT id, path, status, job_id FROM sessions_app_importreport ORDER BY id")
    waiting = [{"report": pk, "source": path} for pk, path, status, job in reports if not status and job]
    deliveries = rows_of(upgraded, "SELECT status, job_id FROM sessions_app_webhookdelivery")

    assert [(status, json.loads(options)) for status, _, options, _ in found["import"]] == [
        ("queued", options) for options in waiting
    ]
    assert [path for pk, path, status, _ in reports if status == "failed"] == [f"{HOME}/agents/later"]
    assert [job[:2] for job in found["sync"]] == [("queued", "olga")]
    assert [job[:2] for job in found["backup"]] == [("queued", "olga")]
    assert [json.loads(job[2]) for job in found["backup_check"]] == [{"name": "memoryhub-20260101T030000Z.backup"}]
    assert len(found["webhook"]) == len([1 for status, job in deliveries if not status and job])
    assert 2 in [attempts for *_, attempts in found["webhook"]]
    assert [len(found[kind]) for kind in ("export", "compression", "rebuild")] == [2, 1, 1]


def test_the_old_queue_is_removed(upgraded):
    with upgraded.database.cursor() as cursor:
        tables = upgraded.database.introspection.table_names(cursor)

    assert [table for table in tables if "django_tasks" in table] == []
    assert rows_of(upgraded, "SELECT count(*) FROM django_migrations WHERE app = 'django_tasks_database'") == [(0,)]


@pytest.mark.slow
@pytest.mark.postgres
def test_jobs_moved_from_the_old_queue_run(upgraded):
    listed = upgraded.ask("work")["work"]

    assert {one["kind"] for one in listed if one["status"] == "queued"} >= {"import", "sync", "backup", "rebuild"}


def test_no_migration_is_left_to_apply(upgraded):
    upgraded.run("migrate", "--check")
    upgraded.run("makemigrations", "--check", "--dry-run")


@pytest.mark.slow
@pytest.mark.postgres
def test_nothing_is_broken_after_the_upgrade(upgraded):
    assert upgraded.ask("check_memory")["broken"] == []


def test_search_works_after_the_upgrade(upgraded):
    assert all(not one["faults"] for one in upgraded.ask("rebuild_search", "--check")["indexes"])
    assert upgraded.ask("search", "deploy", "--workspace", "atlas")["results"]
    assert len(upgraded.ask("search", "👍")["results"]) > 0

    upgraded.run("knowledge", "add", "atlas", "--content", "Orchids bloom in May", "--category", "learned_fact")
    assert len(upgraded.ask("search", "orchids", "--workspace", "atlas")["results"]) == 1


@pytest.fixture
def old_backup(upgraded, tmp_path, settings):
    """Return a backup, and its manifest, as commit 827a92b created them: with sessions and without a MAC."""
    settings.MEMORYHUB_HOME = tmp_path / "old-home"
    settings.MEMORYHUB_HOME.mkdir()
    (settings.MEMORYHUB_HOME / "secret_key").write_text(hub.SECRET_KEY)
    _load(settings.MEMORYHUB_HOME)
    database = settings.MEMORYHUB_HOME / "memoryhub.sqlite3"
    with closing(sqlite3.connect(database)) as raw:
        raw.execute("INSERT INTO django_session VALUES ('key', 'data', '2030-01-01')")
        raw.commit()
    tables = sqlite.contents(database)
    manifest = replace(
        back_up(tmp_path / "new").manifest,
        migrations=_applied(database),
        tables=tables,
        digest=digest_of(tables),
        members={"database.sqlite3": content_of(database)},
        mac="",
    )
    file = tmp_path / "old.tar.gz"
    with file.open("wb") as out:
        write_backup_file(out, manifest, {"database.sqlite3": database}, "")
    return file, manifest


def _applied(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as raw:
        return sorted(".".join(row) for row in raw.execute("SELECT app, name FROM django_migrations"))


@pytest.mark.slow
@pytest.mark.postgres
@only_sqlite
def test_an_old_backup_is_restored_with_warnings(old_backup, tmp_path):
    file, manifest = old_backup
    database = tmp_path / "restored.sqlite3"

    restored = json.loads(manage(tmp_path, str(database), "restore", str(file), "--json"))

    assert "no MAC" in restored["warnings"][0]
    assert "login sessions" in restored["warnings"][1]
    assert restored["pending_migrations"]
    rows = sqlite.contents(database)
    assert rows["django_session"].size == rows["memoryhub_signin"].size == 0
    assert {name for name in manifest.tables if rows[name] != manifest.tables[name]} == {
        "django_session",
        "memoryhub_signin",
    }


@only_sqlite
def test_the_schema_of_an_upgraded_database_is_accepted_in_backups(old_backup, upgraded):
    database = Path(upgraded.database.settings_dict["NAME"])

    check_schema(database, replace(old_backup[1], migrations=_applied(database)))


def applied_at_827a92b() -> set[str]:
    on_disk = MigrationLoader(None).disk_migrations
    old = {key for migration in on_disk.values() for key in migration.replaces if key not in on_disk}
    return {f"{app}.{name}" for app, name in old | {key for key in on_disk if key[1] == "0001_initial"}}


def test_a_backup_of_827a92b_needs_no_migration_of_those_squashed():
    applied = applied_at_827a92b()

    assert unknown_migrations(applied) == []
    assert not is_too_old(applied)
    assert not {name for name in pending_migrations(applied) if "squashed" in name or name in applied}


def test_the_squashes_name_every_migration_of_827a92b(upgraded):
    columns, rows = upgraded.before["django_migrations"]
    recorded = {f"{row[columns.index('app')]}.{row[columns.index('name')]}" for row in rows}

    assert own(recorded) == own(applied_at_827a92b())


def own(names: set[str]) -> set[str]:
    return {name for name in names if name.startswith(("sessions_app.", "knowledge_app.", "memoryhub."))}


@pytest.mark.parametrize(("app", "table"), [("sessions_app", "entry"), ("knowledge_app", "fact")])
def test_search_indexes_of_827a92b_are_kept(app, table, db):
    migration = MigrationLoader(None).disk_migrations[app, "0002_search"]
    state = ProjectState()

    assert is_installed(connection, f"{app}_{table}")
    assert migration.apply(state, SimpleNamespace(connection=connection)) is state  # nothing to execute


@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        (set(), False),
        ({"sessions_app.0001_initial"}, True),
        (applied_at_827a92b() - {"sessions_app.0011_sessions_in_use"}, True),
        (applied_at_827a92b() - {"memoryhub.0004_desk"}, True),
        (applied_at_827a92b() | {"sessions_app.0002_search"}, False),
    ],
)
def test_a_database_older_than_827a92b_is_refused(applied, expected):
    assert is_too_old(applied) is expected


@pytest.fixture
def older_database(db) -> None:
    MigrationRecorder(connection).record_unapplied("sessions_app", "0011_sessions_in_use")


@pytest.mark.usefixtures("older_database")
def test_migrate_and_serve_explain_how_to_upgrade_an_older_database():
    with pytest.raises(SystemCheckError, match="Check out 827a92b, run"):
        call_command("migrate", skip_checks=False)
    with pytest.raises(CommandError, match="Check out 827a92b, run"):
        serve._migrate()


def test_no_migration_has_the_name_of_one_of_827a92b(upgraded):
    columns, rows = upgraded.before["django_migrations"]
    recorded = {(row[columns.index("app")], row[columns.index("name")]) for row in rows}
    on_disk = set(MigrationLoader(None).disk_migrations)

    assert own({f"{app}.{name}" for app, name in recorded & on_disk if name != "0001_initial"}) == set()
