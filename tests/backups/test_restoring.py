"""Restoring a backup into an empty, used, locked or damaged database."""

import shutil
import sqlite3
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from memoryhub.backups import folder, postgres, sqlite
from memoryhub.backups.archive import BadBackup
from memoryhub.backups.create import backup_lock, create_backup
from memoryhub.backups.errors import BackupFailed
from memoryhub.backups.in_use_lock import exclusive_database, using_database
from memoryhub.backups.restore import is_used
from memoryhub.conversations.appending import record_entries
from memoryhub.lib.database.direct_connection import new_direct_connection
from sessions_app.services.audit import By
from sessions_app.services.parsing import read_batch
from tests.backups.databases import KEY, ON_POSTGRES, back_up, contents, restore
from tests.hub import AGENT, NOW, raises_code

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        ON_POSTGRES and not shutil.which("pg_dump"), reason="PostgreSQL's client programs are missing"
    ),
    pytest.mark.usefixtures("home"),
]


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_backup_under_load_is_a_snapshot_and_restores_the_same_rows(workspace, elsewhere, tmp_path):
    written, stopping = [], threading.Event()

    def write():
        while not stopping.is_set():
            rows = read_batch([{"role": "user", "content": f"entry {len(written)} " + "words " * 20}] * 5, now=NOW)
            record_entries(workspace, "cli:busy", rows, by=By(AGENT, NOW))
            written.append(len(rows))
        connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    while len(written) < 3:
        stopping.wait(0.01)
    before = sum(written)
    made = back_up(tmp_path)
    going_on = len(written)
    while len(written) < going_on + 2:
        stopping.wait(0.01)
    stopping.set()
    writer.join()

    restored = restore(made, elsewhere)

    entries = made.manifest.tables["sessions_app_entry"].size
    assert before <= entries <= sum(written)
    assert entries % 5 == 0  # no partial batches
    with elsewhere.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sessions_app_auditrecord WHERE action = 'entry.added'")
        assert cursor.fetchone()[0] == entries // 5  # nor transactions
    assert contents(elsewhere) == made.manifest.tables
    assert restored.pending == []
    assert restored.aside == ""


@pytest.mark.slow
@pytest.mark.postgres
def test_a_database_in_use_is_refused_or_moved_aside(source, elsewhere, settings):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    restore(source, elsewhere)
    with elsewhere.cursor() as cursor:
        cursor.execute(
            "INSERT INTO auth_user (username, password, is_superuser, is_staff, is_active, first_name, last_name, "
            "email, date_joined) VALUES ('olga', '', false, false, true, '', '', '', '2026-04-01')"
        )
    assert is_used(elsewhere)

    with raises_code("restore_refused", match="contains data"):
        restore(source, elsewhere)
    with elsewhere.cursor() as cursor:
        cursor.execute("SELECT username FROM auth_user")
        assert cursor.fetchall() == [("olga",)]
    elsewhere.close()
    restored = restore(source, elsewhere, replace=True)

    assert contents(elsewhere) == source.manifest.tables
    assert "before" in restored.aside
    if ON_POSTGRES:
        with elsewhere.cursor() as cursor:
            cursor.execute(f"SELECT username FROM {restored.aside}.auth_user")
            assert cursor.fetchall() == [("olga",)]
    else:
        with closing(sqlite3.connect(restored.aside)) as aside:
            assert aside.execute("SELECT username FROM auth_user").fetchall() == [("olga",)]


def one_table(elsewhere):
    """Create a table in the other database, and return its contents."""
    with elsewhere.cursor() as cursor:
        cursor.execute("CREATE TABLE shopping (id integer PRIMARY KEY, what text)")
        cursor.execute("INSERT INTO shopping VALUES (1, 'tea')")
    elsewhere.close()
    return contents(elsewhere)


def fail_restore(monkeypatch):
    """Let the next restore fail after replacing the database."""
    put, run = sqlite.replace_database, postgres._run

    def replace_and_damage(new, file, aside):
        had_database = put(new, file, aside)
        with closing(sqlite3.connect(file)) as database:
            database.execute("DELETE FROM django_migrations")
            database.commit()
        return had_database

    def refuse(database, command):
        if "--single-transaction" in command:
            raise BackupFailed("pg_restore failed: out of memory")
        return run(database, command)

    monkeypatch.setattr(sqlite, "replace_database", replace_and_damage)
    monkeypatch.setattr(postgres, "_run", refuse)


@pytest.mark.parametrize("had_database", [True, False])
def test_a_failed_restore_puts_the_previous_database_back(had_database, source, elsewhere, settings, monkeypatch):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    before = one_table(elsewhere) if had_database else {}
    fail_restore(monkeypatch)

    with raises_code("restore_refused", match=r"previous database was put back|out of memory"):
        restore(source, elsewhere)

    if had_database:
        assert contents(elsewhere) == before
    elif ON_POSTGRES:
        assert not postgres.has_tables(elsewhere)
    else:
        assert not Path(elsewhere.settings_dict["NAME"]).exists()


@pytest.mark.slow
@pytest.mark.postgres
def test_a_database_with_other_connections_is_not_replaced(source, elsewhere, settings):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    before = one_table(elsewhere)
    used = elsewhere.copy()
    with used.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM shopping")

    with raises_code("hub_runs"):
        restore(source, elsewhere, replace=True)
    used.close()

    assert contents(elsewhere) == before


@pytest.mark.skipif(not ON_POSTGRES, reason="an SQLite connection is gone once it is closed")
def test_a_restore_waits_for_a_connection_that_is_being_closed(source, elsewhere, settings):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    used = elsewhere.copy()
    used.inc_thread_sharing()
    used.ensure_connection()
    closing_soon = threading.Timer(0.2, used.close)

    closing_soon.start()
    restore(source, elsewhere, replace=True)
    closing_soon.join()

    assert postgres.has_tables(elsewhere)


def test_a_restore_and_a_hub_exclude_each_other(source, elsewhere, settings, monkeypatch):
    settings.MEMORYHUB_BACKUP_KEY = KEY

    with using_database(elsewhere), using_database(elsewhere), raises_code("hub_runs", match="Stop it"):
        restore(source, elsewhere)

    monkeypatch.setattr("memoryhub.management.commands.worker.connection", elsewhere)
    with exclusive_database(elsewhere), pytest.raises(CommandError, match="being restored"):
        call_command("worker")


@pytest.mark.skipif(not ON_POSTGRES, reason="an advisory lock")
def test_a_lock_is_released_before_its_connection_is_closed(elsewhere, monkeypatch):
    opened = []

    @contextmanager
    def never_closed(database):
        opened.append(new_direct_connection(database))
        yield opened[-1]

    monkeypatch.setattr("memoryhub.backups.in_use_lock.direct_connection", never_closed)
    try:
        for lock in (using_database, exclusive_database, using_database):
            with lock(elsewhere):
                pass
    finally:
        for own in opened:
            own.close()


@pytest.mark.skipif(ON_POSTGRES, reason="a file of SQLite")
def test_lock_files_are_readable_only_by_their_owner(elsewhere, home):
    database = Path(elsewhere.settings_dict["NAME"])
    lock = database.with_name(f"{database.name}.lock")
    lock.touch()
    lock.chmod(0o644)

    with using_database(elsewhere), backup_lock():
        folder.update_state(failure="")
        locks = [lock, home / "locks" / "backup.lock", home / "locks" / "backup-state.lock"]
        assert [file.stat().st_mode & 0o777 for file in locks] == [0o600] * 3


@pytest.mark.skipif(ON_POSTGRES, reason="a file of SQLite")
def test_a_missing_database_is_named(elsewhere, monkeypatch, tmp_path):
    with pytest.raises(BackupFailed, match="Is MEMORYHUB_HOME the hub's folder"):
        create_backup(tmp_path / "out", database=elsewhere, clock=lambda: NOW)

    elsewhere.settings_dict["NAME"] = str(tmp_path / "nowhere" / "hub.sqlite3")
    monkeypatch.setattr("memoryhub.management.commands.worker.connection", elsewhere)
    with pytest.raises(CommandError, match=r"lock file .* can't be created"):
        call_command("worker")


def test_the_write_ahead_log_of_a_crash_is_moved_aside(tmp_path):
    if ON_POSTGRES:
        pytest.skip("a file of SQLite")
    file, new, aside = tmp_path / "hub.sqlite3", tmp_path / "new.sqlite3", tmp_path / "aside"
    for path, text in ((file, "old"), (new, "new"), (Path(f"{file}-wal"), "log")):
        path.write_text(text)

    assert sqlite.replace_database(new, file, aside)

    assert (file.read_text(), aside.read_text(), Path(f"{aside}-wal").read_text()) == ("new", "old", "log")
    assert not Path(f"{file}-wal").exists()


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.skipif(ON_POSTGRES, reason="a file of SQLite")
def test_a_damaged_database_is_moved_aside(source, elsewhere, settings):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    Path(elsewhere.settings_dict["NAME"]).write_text("no database at all, and more than a few bytes of it" * 20)

    with raises_code("restore_refused", match="contains data"):
        restore(source, elsewhere)
    with raises_code("restore_unapplied", match="can't be read"):
        restore(source, elsewhere, replace=True)
    restored = restore(source, elsewhere, replace=True, accept_unapplied=True)

    assert Path(restored.aside).read_text().startswith("no database")
    assert contents(elsewhere) == source.manifest.tables


def test_damaged_pages_and_missing_references_are_found(tmp_path):
    file = tmp_path / "copy.sqlite3"
    with closing(sqlite3.connect(file)) as copy:
        copy.executescript(
            "CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (a_id REFERENCES a (id), t TEXT);"
        )
        copy.execute("INSERT INTO b VALUES (7, 'tea')")
        copy.commit()
    with pytest.raises(BadBackup, match="references a missing row"):
        sqlite.check_copy(file)

    raw = bytearray(file.read_bytes())
    raw[-4096:-4000] = b"\xff" * 96
    file.write_bytes(raw)
    with pytest.raises(BadBackup, match="damaged"):
        sqlite.check_copy(file)
