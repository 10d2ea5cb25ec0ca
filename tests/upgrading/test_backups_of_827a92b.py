"""Backups of commit 827a92b can be restored, and an upgraded database passes the check of its schema."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest
from django.conf import settings as hub
from django.db import connection

from memoryhub.backups import sqlite
from memoryhub.backups.archive import content_of, digest_of, write_backup_file
from memoryhub.backups.schema import check_schema
from tests.backups.databases import back_up
from tests.upgrading.test_from_827a92b import ROOT, SAMPLE

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="a file of SQLite"),
]


@pytest.fixture
def old_backup(tmp_path, settings):
    """Return a backup, and its manifest, as commit 827a92b created them: with sessions and without a MAC."""
    settings.MEMORYHUB_HOME = tmp_path / "old-home"
    settings.MEMORYHUB_HOME.mkdir()
    (settings.MEMORYHUB_HOME / "secret_key").write_text(hub.SECRET_KEY)
    database = tmp_path / "database.sqlite3"
    with closing(sqlite3.connect(database)) as raw:
        raw.executescript(gzip.decompress((SAMPLE / "sqlite.sql.gz").read_bytes()).decode())
        raw.execute("INSERT INTO django_session VALUES ('key', 'data', '2030-01-01')")
        raw.commit()
        migrations = sorted(".".join(row) for row in raw.execute("SELECT app, name FROM django_migrations"))
    tables = sqlite.contents(database)
    manifest = replace(
        back_up(tmp_path / "new").manifest,
        migrations=migrations,
        tables=tables,
        digest=digest_of(tables),
        members={database.name: content_of(database)},
        mac="",
    )
    file = tmp_path / "old.tar.gz"
    with file.open("wb") as out:
        write_backup_file(out, manifest, {database.name: database}, "")
    return file, manifest


def test_an_old_backup_is_restored_with_warnings(old_backup, tmp_path):
    file, _ = old_backup
    home = tmp_path / "home"
    own = {"MEMORYHUB_HOME": str(home), "DATABASE_URL": f"sqlite:///{home}/memoryhub.sqlite3"}
    environment = {**os.environ, **own, "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}

    def manage(*arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    restored = json.loads(manage("restore", str(file), "--json"))
    manage("migrate", "--verbosity", "0")

    assert "no MAC" in restored["warnings"][0]
    assert "login sessions" in restored["warnings"][1]
    assert restored["pending_migrations"]
    migrated = home / "memoryhub.sqlite3"
    assert sqlite.contents(migrated)["django_session"].size == 0
    _, manifest = old_backup
    with closing(sqlite3.connect(migrated)) as raw:
        applied = [".".join(row) for row in raw.execute("SELECT app, name FROM django_migrations")]
    check_schema(migrated, replace(manifest, migrations=applied))
