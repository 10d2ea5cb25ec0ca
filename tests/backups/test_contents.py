"""What backups don't contain, and how forged ones are detected."""

from __future__ import annotations

import shutil
import sqlite3
import tarfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection

from knowledge_app.models import GraphLayout
from memoryhub.backups import postgres, sqlite
from memoryhub.backups.archive import BadBackup, unpack_backup, write_backup_file
from memoryhub.backups.schema import check_schema, read_schema
from memoryhub.backups.schema import expected_schema as migrated_schema  # before tests replace it
from memoryhub.models import SignIn
from tests.backups.databases import ON_POSTGRES, back_up, contents, restore

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        ON_POSTGRES and not shutil.which("pg_dump"), reason="PostgreSQL's client programs are missing"
    ),
    pytest.mark.usefixtures("home"),
]


def sign_in(client) -> str:
    """Sign somebody in, and return the key of the session."""
    client.force_login(User.objects.create_user("vera"))
    SignIn.objects.create(user=User.objects.get(), session_key=client.session.session_key)
    return client.session.session_key


@pytest.mark.django_db(transaction=True)
def test_backups_contain_no_session_keys(client, settings, tmp_path):
    key = sign_in(client)
    created = back_up(tmp_path / "out")
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    unpack_backup(created.file, "", unpacked)

    assert created.manifest.session_count == 0
    assert created.manifest.tables["auth_user"].size == 1
    assert created.manifest.tables["memoryhub_signin"].size == 0
    assert all(key.encode() not in file.read_bytes() for file in unpacked.iterdir())


@pytest.mark.django_db(transaction=True)
def test_backups_contain_no_cached_graphs(workspace, tmp_path):
    GraphLayout.objects.create(workspace=workspace, version=1, revision=1, message_count=0, data={"nodes": ["xyzzy"]})
    created = back_up(tmp_path / "out")
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    unpack_backup(created.file, "", unpacked)

    assert created.manifest.tables["knowledge_app_graphlayout"].size == 0
    assert all(b"xyzzy" not in file.read_bytes() for file in unpacked.iterdir())


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_session_keys_of_an_older_backup_are_reported_and_not_restored(
    client, command, elsewhere, tmp_path, monkeypatch
):
    sign_in(client)
    monkeypatch.setattr(sqlite, "delete_sessions", lambda _: None)
    monkeypatch.setattr(postgres, "SESSION_TABLES", ())
    created = back_up(tmp_path / "out")
    monkeypatch.setattr("memoryhub.management.commands.restore.connection", elsewhere)

    verified = command("backup", "--verify", str(created.file))
    restored = command("restore", str(created.file))

    assert created.manifest.session_count == 1
    assert "keys of 1 login sessions" in verified["warnings"][-1]
    assert verified["warnings"] == restored["warnings"]
    assert contents(elsewhere)["django_session"].size == 0
    assert contents(elsewhere)["memoryhub_signin"].size == 0


def changed_manifest(created, tmp_path, **changes):
    """Return the file of the backup with another manifest."""
    folder, file = tmp_path / "members", tmp_path / "changed.tar.gz"
    folder.mkdir()
    manifest = replace(unpack_backup(created.file, "", folder), **changes)
    with file.open("wb") as out:
        write_backup_file(out, manifest, {name: folder / name for name in manifest.members}, "")
    return str(file)


def test_a_backup_that_was_changed_is_refused(command, tmp_path):
    file = changed_manifest(back_up(tmp_path / "out"), tmp_path, taken_at="2027-01-01T00:00:00+00:00")

    assert "MAC" in command("backup", "--verify", file, status=1)["error"]["message"]


@pytest.mark.parametrize(
    ("changes", "warning"), [({"mac": ""}, "older version"), ({"key_check": "00000000"}, "another secret key")]
)
def test_a_mac_that_cannot_be_verified_is_reported(changes, warning, command, tmp_path):
    file = changed_manifest(back_up(tmp_path / "out"), tmp_path, **changes)

    (message,) = command("backup", "--verify", file)["warnings"]
    assert warning in message


def test_a_new_backup_has_no_warnings(command, tmp_path):
    assert command("backup", "--verify", str(back_up(tmp_path / "out").file))["warnings"] == []


FORGED = [
    "CREATE VIEW spy AS SELECT * FROM auth_user",
    "CREATE TRIGGER spy AFTER INSERT ON auth_user BEGIN UPDATE auth_user SET is_superuser = 1; END",
    "DROP TRIGGER sessions_app_entry_no_delete; CREATE TRIGGER sessions_app_entry_no_delete AFTER INSERT ON "
    "auth_user BEGIN UPDATE auth_user SET is_superuser = 1; END",
    "ALTER TABLE auth_user ADD COLUMN spy text",
]


def forge(monkeypatch, statements: str) -> None:
    """Let the next backup contain a changed schema, with a valid manifest."""
    delete_sessions = sqlite.delete_sessions

    def change(file) -> None:
        delete_sessions(file)
        with closing(sqlite3.connect(file)) as copy:
            copy.executescript(statements)

    monkeypatch.setattr(sqlite, "delete_sessions", change)


@pytest.mark.slow
@pytest.mark.skipif(ON_POSTGRES, reason="a file of SQLite")
def test_the_expected_schema_is_that_of_a_migrated_database():
    assert migrated_schema() == read_schema(Path(connection.settings_dict["NAME"]))


@pytest.mark.slow
@pytest.mark.skipif(ON_POSTGRES, reason="a file of SQLite")
@pytest.mark.parametrize("statements", FORGED, ids=["view", "trigger", "changed trigger", "column"])
def test_an_unknown_schema_is_refused(statements, command, elsewhere, monkeypatch, tmp_path):
    forge(monkeypatch, statements)
    created = back_up(tmp_path / "out")

    assert "unknown or changed" in command("backup", "--verify", str(created.file), status=1)["error"]["message"]
    with pytest.raises(BadBackup):
        restore(created, elsewhere)


@pytest.mark.skipif(ON_POSTGRES, reason="a file of SQLite")
@pytest.mark.parametrize("statements", FORGED[:2], ids=["view", "trigger"])
def test_unknown_objects_of_an_older_backup_are_refused(statements, monkeypatch, tmp_path):
    forge(monkeypatch, statements)
    created = back_up(tmp_path / "out")
    older = replace(created.manifest, migrations=created.manifest.migrations[:-1])
    file = tmp_path / "copy.sqlite3"
    with tarfile.open(created.file) as archive:
        file.write_bytes(archive.extractfile("database.sqlite3").read())

    with pytest.raises(BadBackup, match="spy"):
        check_schema(file, older)


def test_unknown_objects_of_a_dump_are_refused():
    known = "12; 1255 16421 FUNCTION public sessions_app_entry_no_delete() memoryhub\n"
    known += "13; 2620 16422 TRIGGER public sessions_app_entry sessions_app_entry_no_delete memoryhub\n"
    postgres._check_objects(known)

    for line in ("14; 1259 16423 VIEW public spy memoryhub", "15; 2620 16424 TRIGGER public auth_user spy memoryhub"):
        with pytest.raises(BadBackup, match="spy"):
            postgres._check_objects(known + line)
