"""Creating, verifying, scheduling and restoring backups."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import threading
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings as hub
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings

from memoryhub.backups import create, encryption, folder, postgres, sqlite
from memoryhub.backups import restore as restoring
from memoryhub.backups.archive import BadBackup, content_of, unpack_backup, write_backup_file
from memoryhub.backups.create import backup_lock, create_backup
from memoryhub.backups.errors import BackupFailed, BackupUnderWay
from memoryhub.backups.in_use_lock import exclusive_database, using_database
from memoryhub.backups.restore import Restored, is_used, restore_backup
from memoryhub.conversations.appending import record_entries
from memoryhub.integrity import Broken, CheckResult
from memoryhub.jobs.queue import do_next_job
from memoryhub.lib.errors import MemoryHubError
from sessions_app.models import AuditRecord
from sessions_app.services.audit import By
from sessions_app.services.parsing import read_batch
from tests.hub import AGENT, NOW, PERSON, raises_code

ON_POSTGRES = bool(hub.DATABASES["default"]["ENGINE"].endswith("postgresql"))
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        ON_POSTGRES and not shutil.which("pg_dump"), reason="PostgreSQL's client programs are missing"
    ),
]
KEY = "a calm sea at dawn"


@pytest.fixture(autouse=True)
def home(settings, tmp_path, monkeypatch):
    """Return a hub's home with a secret key. Makes key derivation fast."""
    monkeypatch.setitem(encryption.SCRYPT, "n", 16)
    settings.MEMORYHUB_HOME = home = tmp_path / "home"
    settings.MEMORYHUB_BACKUP_DIR = home / "backups"
    home.mkdir()
    (home / "secret_key").write_text(hub.SECRET_KEY)
    return home


@pytest.fixture(scope="module")
def source(django_db_setup, django_db_blocker, tmp_path_factory):
    """Return an encrypted backup of a migrated, empty database."""
    home = tmp_path_factory.mktemp("first-hub")
    (home / "secret_key").write_text(hub.SECRET_KEY)
    with (
        django_db_blocker.unblock(),
        override_settings(MEMORYHUB_HOME=home, MEMORYHUB_BACKUP_KEY=KEY),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setitem(encryption.SCRYPT, "n", 16)
        made = create_backup(home, database=connection, clock=lambda: NOW)
        connection.close()
    return made


@pytest.fixture
def elsewhere(tmp_path, django_db_blocker):
    """Return a connection to another, empty database of the same kind."""
    other = connection.copy()
    if not ON_POSTGRES:
        other.settings_dict["NAME"] = str(tmp_path / "elsewhere.sqlite3")
        yield other
        other.close()
        return
    other.settings_dict["NAME"] = name = f"{connection.settings_dict['NAME']}_elsewhere"
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')
        cursor.execute(f'CREATE DATABASE "{name}"')
    yield other
    other.close()
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE "{name}"')


def restore(made, elsewhere, *, replace=False):
    return restore_backup(made.file, database=elsewhere, replace=replace, now=NOW)


def contents(database):
    return postgres.contents(database) if ON_POSTGRES else sqlite.contents(Path(database.settings_dict["NAME"]))


def back_up(place, now=NOW):
    return create_backup(place, database=connection, clock=lambda: now)


def test_a_backup_has_a_manifest_and_leaves_no_other_files(home, tmp_path):
    made = back_up(tmp_path / "out")

    assert made.file.name == "memoryhub-20260401T120000Z.tar.gz"
    assert made.file.stat().st_mode & 0o777 == 0o600
    assert made.manifest.taken_at == "2026-04-01T12:00:00+00:00"
    assert connection.settings_dict["NAME"] in made.manifest.database
    assert "memoryhub.0001_initial" in made.manifest.migrations
    assert made.manifest.tables["django_migrations"].size == len(made.manifest.migrations)
    assert [file.name for file in (tmp_path / "out").iterdir()] == [made.file.name]
    assert {file.name for file in home.iterdir()} == {"secret_key"}


def test_a_second_backup_in_the_same_second_gets_another_name(tmp_path, monkeypatch):
    (tmp_path / "memoryhub-20260401T120000Z.tar.gz").touch()

    assert create._new_path(tmp_path, NOW, is_encrypted=False).name == "memoryhub-20260401T120000Z-2.tar.gz"


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


def test_a_restore_and_a_hub_exclude_each_other(source, elsewhere, settings, monkeypatch):
    settings.MEMORYHUB_BACKUP_KEY = KEY

    with using_database(elsewhere), using_database(elsewhere), raises_code("hub_runs", match="Stop it"):
        restore(source, elsewhere)

    monkeypatch.setattr("memoryhub.management.commands.worker.connection", elsewhere)
    with exclusive_database(elsewhere), pytest.raises(CommandError, match="being restored"):
        call_command("worker")


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


@pytest.mark.skipif(ON_POSTGRES, reason="a file of SQLite")
def test_a_damaged_database_is_moved_aside(source, elsewhere, settings):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    Path(elsewhere.settings_dict["NAME"]).write_text("no database at all, and more than a few bytes of it" * 20)

    with raises_code("restore_refused", match="contains data"):
        restore(source, elsewhere)
    restored = restore(source, elsewhere, replace=True)

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


def changed(source, tmp_path, change):
    """Return the backup with a changed manifest."""
    work = tmp_path / "work"
    work.mkdir()
    manifest = replace(unpack_backup(source.file, KEY, work), **change)
    file = tmp_path / "changed.sealed"
    with file.open("wb") as out:
        write_backup_file(out, manifest, {name: work / name for name in manifest.members}, KEY)
    return replace(source, file=file)


def test_a_backup_of_a_newer_hub_is_refused(source, elsewhere, settings, tmp_path):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    migrations = [*source.manifest.migrations, "memoryhub.9999_later"]

    with raises_code("restore_refused", match=r"newer MemoryHub .* Upgrade"):
        restore(changed(source, tmp_path, {"migrations": migrations}), elsewhere)
    assert not is_used(elsewhere)


@pytest.fixture
def no_replacing(monkeypatch):
    """Skip replacing the database, which is slow."""
    for name in ("_replace_file", "_replace_schema"):
        monkeypatch.setattr(restoring, name, lambda *_args: "")


def test_restoring_an_older_backup_reports_pending_migrations(source, no_replacing, elsewhere, settings, tmp_path):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    lacking = "sessions.0001_initial"
    migrations = [one for one in source.manifest.migrations if one != lacking]

    assert restore(changed(source, tmp_path, {"migrations": migrations}), elsewhere).pending == [lacking]


def test_a_backup_from_before_827a92b_is_refused(source, elsewhere, settings, tmp_path):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    migrations = [one for one in source.manifest.migrations if one != "sessions_app.0011_sessions_in_use"]

    with raises_code("restore_refused", match=r"from before commit 827a92b.*create a new backup"):
        restore(changed(source, tmp_path, {"migrations": migrations}), elsewhere)
    assert not is_used(elsewhere)


def test_a_backup_of_the_other_kind_of_database_is_refused(source, elsewhere, settings, tmp_path):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    vendor, name = ("sqlite", "database.sqlite3") if ON_POSTGRES else ("postgresql", "database.pgdump")
    other = tmp_path / "out"
    other.mkdir()
    manifest = unpack_backup(source.file, KEY, other)
    (other / name).write_bytes(b"of another kind")
    manifest = replace(manifest, vendor=vendor, members={name: content_of(other / name)})
    with (tmp_path / "other.sealed").open("wb") as out:
        write_backup_file(out, manifest, {name: other / name}, KEY)

    with raises_code("restore_refused", match="export each workspace"):
        restore(replace(source, file=tmp_path / "other.sealed"), elsewhere)


@pytest.mark.parametrize("key", ["a stormy sea at dusk", ""])
def test_an_encrypted_backup_needs_its_key(key, source, elsewhere, settings):
    settings.MEMORYHUB_BACKUP_KEY = key

    with pytest.raises(MemoryHubError, match=r"MEMORYHUB_BACKUP_KEY"):
        restore(source, elsewhere)
    assert not is_used(elsewhere)


def test_rows_that_do_not_match_the_manifest_are_refused(source, elsewhere, settings, tmp_path):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    tables = source.manifest.tables | {"auth_user": replace(source.manifest.tables["auth_user"], size=7)}
    wrong = changed(source, tmp_path, {"tables": tables, "digest": create.digest_of(tables)})

    with pytest.raises(MemoryHubError, match=r"rows|manifest") as caught:
        restore(wrong, elsewhere)
    assert caught.value.code in ("bad_backup", "restore_refused")
    assert not is_used(elsewhere)
    if ON_POSTGRES:
        assert not postgres.has_tables(elsewhere)


def test_only_encrypted_backups_contain_the_secret_key(source, no_replacing, elsewhere, settings, home, tmp_path):
    assert back_up(tmp_path / "out").manifest.secret_key == "left out"
    assert source.manifest.secret_key == "inside"
    settings.MEMORYHUB_BACKUP_KEY = KEY
    settings.SECRET_KEY = "that of a new hub"
    (home / "secret_key").write_text("that of a new hub")

    restored = restore(source, elsewhere)

    assert restored.secret_key == "restored"
    assert (home / "secret_key").read_text() == (source.file.parent / "secret_key").read_text()
    assert (home / "secret_key").stat().st_mode & 0o777 == 0o600
    assert (home / "secret_key.before-restore-20260401T120000Z").read_text() == "that of a new hub"


def test_a_key_from_the_environment_is_kept(source, no_replacing, elsewhere, settings):
    settings.MEMORYHUB_BACKUP_KEY, settings.SECRET_KEY = KEY, "from the environment"

    assert restore(source, elsewhere).secret_key == "another"


def test_a_failed_backup_leaves_no_file_and_is_recorded(settings, home):
    settings.MEMORYHUB_BACKUP_KEY = "short"

    with pytest.raises(BackupFailed, match="12 characters"):
        folder.create_in_folder(actor=PERSON, clock=lambda: NOW)

    assert folder.list_backups() == []
    assert "12 characters" in folder.read_state().failure
    assert not AuditRecord.objects.exists()


def test_a_full_disk_is_reported_before_copying(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))

    with pytest.raises(BackupFailed, match="too full"):
        back_up(tmp_path / "out")


def test_a_backup_that_cannot_be_verified_is_removed(monkeypatch, tmp_path):
    def spoil(out, *_args):
        write_backup_file(out, *_args)
        out.seek(-2_000, 2)
        out.write(b"spoilt")

    monkeypatch.setattr(create, "write_backup_file", spoil)

    with pytest.raises(BackupFailed, match="can't be verified"):
        back_up(tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_missing_programs_of_postgresql_are_named(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _name: None)

    with pytest.raises(BackupFailed, match="apt install postgresql-client"):
        postgres._program("pg_dump", connection)


def test_the_password_is_passed_only_in_the_environment():
    other = connection.copy()
    other.settings_dict |= {"PASSWORD": "tea for two", "HOST": "db.example.org"}
    code = "import os, sys; print(os.environ['PGPASSWORD'], os.environ['PGHOST'], sys.argv)"

    output = postgres._run(other, [sys.executable, "-c", code])

    assert output == "tea for two db.example.org ['-c']\n"


def test_a_backup_cancelled_while_it_copies_leaves_nothing_and_delays_the_schedule(monkeypatch, settings, home):
    real_copy = create._copy

    def copy(*arguments):
        copied = real_copy(*arguments)
        folder.cancel_backup(by=By(PERSON, NOW))
        return copied

    monkeypatch.setattr(create, "_copy", copy)
    settings.MEMORYHUB_BACKUP_HOURS = 24.0
    folder.update_state(watched_since="2020-01-01T00:00:00+00:00")

    folder.request_due_backup(NOW)
    assert do_next_job(clock=lambda: NOW)

    assert not [*folder.backup_folder().glob("*memoryhub*"), *home.glob(f"{create.WORK}*")]
    assert AuditRecord.objects.get().action == "backup.cancelled"
    assert folder.current_job() is None
    assert not folder.is_due(NOW)
    assert folder.is_due(NOW + folder.RETRY)


def test_one_backup_at_a_time(monkeypatch):
    monkeypatch.setattr(create, "LOCK_SECONDS", 0.05)

    with backup_lock(), pytest.raises(BackupUnderWay):
        folder.create_in_folder(actor=PERSON, clock=lambda: NOW)


def fake_backups(monkeypatch):
    """Replace create_backup with a fast fake."""

    def make(place, *, clock, **_options):
        file = place / f"memoryhub-{clock():{create.STAMP}}.tar.gz"
        file.write_bytes(b"")
        manifest = type("Manifest", (), {"rows": 3, "digest": ""})
        return create.CreatedBackup(file, manifest, is_encrypted=False, size=0)

    monkeypatch.setattr(folder, "create_backup", make)


def test_the_newest_backups_and_other_files_are_kept(monkeypatch, settings):
    fake_backups(monkeypatch)
    settings.MEMORYHUB_BACKUP_KEEP = 2
    for name in ("holiday.tar.gz", ".memoryhub-20260301T120000Z.tar.gz.part"):
        (folder.backup_folder() / name).touch()

    for day in range(4):
        folder.create_in_folder(actor=PERSON, clock=lambda day=day: NOW + timedelta(days=day))

    assert [kept.taken_at.day for kept in folder.list_backups()] == [4, 3]
    assert (folder.backup_folder() / "holiday.tar.gz").exists()
    assert not list(folder.backup_folder().glob("*.part"))  # of a killed backup
    assert list(AuditRecord.objects.order_by("id").values_list("action", flat=True)).count("backup.deleted") == 2
    assert set(folder.read_state().checked) == {kept.name for kept in folder.list_backups()}


def test_keep_zero_keeps_all_backups(monkeypatch, settings):
    fake_backups(monkeypatch)
    settings.MEMORYHUB_BACKUP_KEEP = 0

    for day in range(3):
        folder.create_in_folder(actor=PERSON, clock=lambda day=day: NOW + timedelta(days=day))

    assert len(folder.list_backups()) == 3


def test_a_backup_dated_in_the_future_does_not_delay_the_schedule(settings):
    settings.MEMORYHUB_BACKUP_HOURS = 24
    folder.update_state(watched_since=NOW.isoformat())
    (folder.backup_folder() / "memoryhub-20360401T120000Z.tar.gz").touch()

    assert folder.is_due(NOW + timedelta(hours=24))


def test_the_schedule_makes_one_a_day_and_waits_an_hour_after_a_failure(monkeypatch, settings):
    fake_backups(monkeypatch)
    settings.MEMORYHUB_BACKUP_HOURS = 24
    hours = dict.fromkeys([0, 23, 24, 25, 47, 48])

    for hour in hours:
        now = NOW + timedelta(hours=hour)
        folder.request_due_backup(now)
        hours[hour] = do_next_job(clock=lambda now=now: now)

    assert [hour for hour, was_made in hours.items() if was_made] == [24, 48]
    folder.update_state(failed_at=(NOW + timedelta(hours=72)).isoformat())
    assert not folder.is_due(NOW + timedelta(hours=72.5))
    assert folder.is_due(NOW + timedelta(hours=73))
    assert folder.next_due(NOW) == NOW + timedelta(hours=73)


def test_hours_zero_turns_the_schedule_off(settings):
    settings.MEMORYHUB_BACKUP_HOURS = 0

    assert not folder.is_due(NOW)
    assert folder.next_due(NOW) is None


def test_a_failed_backup_is_retried_after_an_hour_on_any_machine(monkeypatch, settings, caplog):
    def fail(*_args, **_options):
        raise BackupFailed("The disk is too full.")

    settings.MEMORYHUB_BACKUP_HOURS = 24
    folder.update_state(watched_since="2020-01-01T00:00:00+00:00")
    monkeypatch.setattr(folder, "create_backup", fail)

    folder.request_due_backup(NOW)
    assert do_next_job(clock=lambda: NOW)
    settings.MEMORYHUB_BACKUP_DIR = settings.MEMORYHUB_HOME / "another"
    folder.update_state(watched_since="2020-01-01T00:00:00+00:00")

    assert "too full" in caplog.text
    assert not folder.is_due(NOW)
    assert folder.is_due(NOW + folder.RETRY)


def test_the_next_backup_removes_files_of_a_killed_one(home, tmp_path):
    left = home / f"{create.WORK}killed"
    left.mkdir()
    (left / "database.sqlite3").touch()

    back_up(tmp_path / "out")

    assert not left.exists()


def test_the_commands_create_verify_and_restore(command, elsewhere, tmp_path, monkeypatch):
    made = command("backup", str(tmp_path / "out"))
    checked = command("backup", "--verify", made["file"])
    monkeypatch.setattr("memoryhub.management.commands.restore.connection", elsewhere)
    restored = command("restore", made["file"])

    assert checked["digest"] == made["digest"] == restored["digest"]
    assert made["encrypted"] is False
    assert restored["restored_to"].endswith(elsewhere.settings_dict["NAME"]) or ON_POSTGRES
    assert restored["broken"] == []
    records = list(AuditRecord.objects.order_by("id"))
    assert [record.action for record in records] == ["backup.made", "backup.restored"]
    assert records[-1].detail == {"taken_at": made["taken_at"]}


def test_an_invalid_file_is_reported_in_one_sentence(command, tmp_path):
    (tmp_path / "notes.txt").write_text("tea")

    for file, words in (("notes.txt", "not a MemoryHub backup"), ("missing", "doesn't exist")):
        document = command("backup", "--verify", str(tmp_path / file), status=1)
        assert document["error"]["code"] == "bad_backup"
        assert words in document["error"]["message"]


def test_backup_prints_a_summary(capsys, tmp_path):
    call_command("backup", str(tmp_path / "out"))

    output = capsys.readouterr().out
    assert "is verified" in output
    assert str(connection.settings_dict["NAME"]) in output
    assert "It isn't encrypted" in output


@pytest.mark.parametrize(
    ("pending", "broken", "words"),
    [
        ([], [], "all invariants hold"),
        (["memoryhub.9999_later"], [], "Pending migrations: 1"),
        (
            [],
            [Broken("tenancy", "its parent is of another workspace", "entry 7")],
            "broken when the backup was made",
        ),
    ],
)
def test_restore_prints_a_summary(pending, broken, words, source, monkeypatch, capsys):
    restored = Restored(source.manifest, "SQLite, /there", "/there.before", pending, "another")
    monkeypatch.setattr("memoryhub.management.commands.restore.restore_backup", lambda *_args, **_options: restored)
    monkeypatch.setattr("memoryhub.management.commands.restore.check_memory", lambda: CheckResult(broken=broken))

    with pytest.raises(SystemExit) if broken else nullcontext():
        call_command("restore", str(source.file))

    output = capsys.readouterr().out
    assert words in output
    assert "moved aside  /there.before" in output
    assert "secret key differs" in output
    assert source.manifest.digest in output
