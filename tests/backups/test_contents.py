"""What backups don't contain, and how forged ones are detected."""

from __future__ import annotations

import shutil

import pytest
from django.contrib.auth.models import User

from memoryhub.backups import postgres, sqlite
from memoryhub.backups.archive import unpack_backup
from memoryhub.models import SignIn
from tests.backups.databases import ON_POSTGRES, back_up, contents

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
    assert "keys of 1 login sessions" in verified["warnings"][0]
    assert verified["warnings"] == restored["warnings"]
    assert contents(elsewhere)["django_session"].size == 0
    assert contents(elsewhere)["memoryhub_signin"].size == 0
