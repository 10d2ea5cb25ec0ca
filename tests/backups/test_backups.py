"""Creating, verifying and scheduling backups."""

import shutil
import sys
from contextlib import nullcontext
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection

from memoryhub.backups import create, folder, postgres
from memoryhub.backups.archive import write_backup_file
from memoryhub.backups.create import backup_lock
from memoryhub.backups.errors import BackupFailed, BackupUnderWay
from memoryhub.backups.restore import Restored
from memoryhub.integrity import Broken, CheckResult
from memoryhub.jobs.queue import do_next_job
from sessions_app.models import AuditRecord
from sessions_app.services.audit import By
from tests.backups.databases import ON_POSTGRES, back_up
from tests.hub import NOW, PERSON

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        ON_POSTGRES and not shutil.which("pg_dump"), reason="PostgreSQL's client programs are missing"
    ),
    pytest.mark.usefixtures("home"),
]


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


def test_a_first_start_or_a_failure_with_a_wrong_clock_does_not_stop_the_schedule(settings):
    settings.MEMORYHUB_BACKUP_HOURS = 24
    wrong = (NOW + timedelta(days=400)).isoformat()
    folder.update_state(watched_since=wrong, failed_at=wrong)

    assert not folder.is_due(NOW)
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


@pytest.mark.slow
@pytest.mark.postgres
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
