"""The structure of the SQLite file: damage is found, reported, and keeps the hub from starting."""

from __future__ import annotations

import sqlite3

import pytest
from django.core.management.base import CommandError
from django.db import connections

from memoryhub.integrity import file_check
from memoryhub.management.commands import serve

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A database file of 100 pages, which the checks use."""
    path = tmp_path / "hub.sqlite3"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE rows (text TEXT)")
        database.executemany("INSERT INTO rows VALUES (?)", [("x" * 4000,)] * 100)
    database.close()
    own = connections.create_connection("default")
    if own.vendor != "sqlite":
        pytest.skip("of SQLite's file")
    own.settings_dict = own.settings_dict | {"NAME": str(path), "OPTIONS": {}}
    monkeypatch.setattr(file_check, "connection", own)
    yield path
    own.close()


def damage(path) -> None:
    content = bytearray(path.read_bytes())
    content[4096 : 4096 * 3] = b"\xff" * 8192
    path.write_bytes(content)


def test_a_sound_file_is_reported_as_sound(file):
    assert (file_check.check_file(5), file_check.known_damage()) == ("", "")


def test_damage_is_found_kept_and_forgotten_after_a_restore(file, client, monkeypatch):
    sound = file.read_bytes()
    damage(file)

    with pytest.raises(CommandError, match=r"damaged\. Restore a backup"):
        serve._refuse_damage()
    answer = client.get("/health/")
    assert (answer.status_code, answer.json()) == (503, {"status": "database_damaged"})

    file_check.connection.close()
    file.write_bytes(sound)
    assert (file_check.check_file(5), file_check.known_damage()) == ("", "")


def test_a_check_without_time_says_nothing(file, monkeypatch):
    monkeypatch.setattr(file_check, "STEPS", 1)
    damage(file)

    assert (file_check.check_file(-1), file_check.known_damage()) == ("", "")


def test_a_full_disk_is_reported_before_a_change_fails(file, client, monkeypatch):
    real = file_check.shutil.disk_usage(file.parent)
    monkeypatch.setattr(file_check.shutil, "disk_usage", lambda _: real._replace(free=4096))

    answer = client.get("/health/")

    assert (answer.status_code, answer.json()) == (507, {"status": "disk_full"})
