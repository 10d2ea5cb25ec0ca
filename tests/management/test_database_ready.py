"""Commands on a new, outdated or unusable database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, OperationalError, ProgrammingError, connection

from memoryhub.backups import in_use_lock
from memoryhub.management import database_ready
from tests.backups.databases import ON_POSTGRES

pytestmark = pytest.mark.django_db(transaction=True)


def command_of(*arguments: str) -> list[str]:
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments]


def environment_of(home) -> dict[str, str]:
    """Return the environment of a hub with a file of SQLite, whatever the tests' database is."""
    own = {"MEMORYHUB_HOME": str(home), "DATABASE_URL": f"sqlite:///{home}/memoryhub.sqlite3"}
    return {**os.environ, **own, "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}


def manage(home, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = environment_of(home)
    return subprocess.run(command_of(*arguments), env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_a_worker_that_cannot_start_ends_without_a_crash_of_python(tmp_path):
    (tmp_path / "memoryhub.sqlite3").write_text("not a database" * 100)

    command, environment = command_of("worker", "--until-stdin-closes"), environment_of(tmp_path)
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as worker:
        error = worker.stderr.read()

    assert worker.returncode == 1
    assert len(error.splitlines()) == 1


@pytest.mark.slow
def test_a_command_creates_the_tables_of_a_new_home(tmp_path):
    done = manage(tmp_path / "home", "people", "list", "--json")

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["people"] == []


@pytest.mark.slow
def test_a_file_that_is_no_database_is_reported_in_one_sentence(tmp_path):
    (tmp_path / "memoryhub.sqlite3").write_text("not a database" * 100)

    as_json, as_text = manage(tmp_path, "stats", "--json"), manage(tmp_path, "stats")

    assert (as_json.returncode, as_text.returncode) == (1, 1)
    assert json.loads(as_json.stdout)["error"]["code"] == "database_unavailable"
    assert as_text.stderr.count("\n") == 1


@pytest.mark.parametrize("error", [OperationalError("no such column: x"), ProgrammingError("no such table")])
def test_an_outdated_database_says_what_to_run(error, command, monkeypatch):
    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr("memoryhub.management.commands.people.Command.run", fail)
    monkeypatch.setattr(database_ready, "applied_migrations", lambda _: {"auth.0001_initial"})

    assert "manage.py migrate" in command("people", "list", status=1)["error"]["message"]
    with pytest.raises(CommandError, match=r"manage.py migrate"):
        call_command("worker")


def test_a_worker_waits_for_the_hub_that_migrates(monkeypatch):
    during_migration = iter([{"auth.0001_initial"}])
    now = database_ready.applied_migrations
    monkeypatch.setattr(database_ready, "applied_migrations", lambda own: next(during_migration, None) or now(own))

    database_ready.prepare_database()

    assert list(during_migration) == []


@pytest.mark.skipif(not ON_POSTGRES, reason="SQLite's lock is a file")
def test_the_second_of_two_first_starts_waits_longer_than_other_locks():
    """Hubs limit the wait for a lock, here to 20 ms, but migrations take longer."""
    second = connection.copy()
    second.settings_dict["OPTIONS"] = {"options": "-c lock_timeout=20"}

    def start() -> str:
        with in_use_lock.migration_lock(second):
            return "started"

    query = "SELECT count(*) FROM pg_locks WHERE NOT granted AND waitstart < clock_timestamp() - interval '0.1 s'"
    with ThreadPoolExecutor(1) as pool:
        with in_use_lock.migration_lock(connection):
            starting = pool.submit(start)
            with connection.cursor() as cursor:
                while not starting.done() and cursor.execute(query).fetchone() == (0,):
                    time.sleep(0.02)
            assert not starting.done()
        assert starting.result() == "started"


def test_other_database_errors(command, monkeypatch):
    errors = iter([OperationalError("disk I/O error\nmore"), DatabaseError("malformed"), ProgrammingError("a bug")])

    def fail(*_args, **_options):
        raise next(errors)

    monkeypatch.setattr("memoryhub.management.commands.people.Command.run", fail)

    message = command("people", "list", status=1)["error"]["message"]
    assert message == "The database can't be used: disk I/O error"
    assert command("people", "list", status=1)["error"]["code"] == "database_unavailable"
    with pytest.raises(ProgrammingError):
        call_command("people", "list")
