import subprocess
import sys
import time
from unittest.mock import Mock

import pytest
from django.db import connection

from memoryhub.lib import process_locks
from memoryhub.lib.process_locks import acquire_lock, process_lock
from tests.backups.databases import ON_POSTGRES

HOLDER = """
import sys, time, psycopg
with psycopg.connect(sys.argv[1], autocommit=True) as own:
    own.execute("SELECT pg_advisory_lock(%s)", [int(sys.argv[2])])
    print("held", flush=True)
    time.sleep(60)
"""
on_postgres = pytest.mark.skipif(not ON_POSTGRES, reason="an advisory lock")


@pytest.fixture(autouse=True)
def home(settings, tmp_path, db):
    settings.MEMORYHUB_HOME = tmp_path


def test_a_lock_is_held_once_until_it_is_released():
    first, other = acquire_lock("atlas"), acquire_lock("borealis")

    assert acquire_lock("atlas", timeout=0.01) is None
    assert (first.is_held(), other.is_held()) == (True, True)
    first.release()
    with process_lock("atlas") as is_acquired:
        assert is_acquired
    with process_lock("borealis") as is_acquired:
        assert not is_acquired
    other.release()


@on_postgres
def test_homes_on_several_machines_share_a_lock(settings, tmp_path):
    held = acquire_lock("atlas")
    another_hub = process_locks._LockConnection()
    settings.MEMORYHUB_HOME = tmp_path / "another"

    assert another_hub.acquire("atlas") is None
    held.release()
    own = another_hub.acquire("atlas")
    assert own is not None
    another_hub.release(own, "atlas")


@on_postgres
def test_a_lock_is_lost_with_its_connection(monkeypatch):
    monkeypatch.setattr(process_locks, "PING_SECONDS", 0.0)
    lost, lost_too = acquire_lock("atlas"), acquire_lock("borealis")
    with connection.cursor() as cursor:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
        cursor.execute(f"{query} AND datname = current_database()", [process_locks.APPLICATION])

    assert (lost.is_held(), lost_too.is_held()) == (False, False)
    again = acquire_lock("atlas", timeout=5)
    assert (lost.is_held(), again.is_held()) == (False, True)
    lost.release()
    assert again.is_held()
    again.release()
    assert process_locks._locks._own is None


@on_postgres
def test_a_lock_of_a_killed_process_is_free_at_once():
    values = connection.settings_dict
    address = f"postgres://{values['USER']}:{values['PASSWORD']}@{values['HOST']}:{values['PORT']}/{values['NAME']}"
    command = [sys.executable, "-c", HOLDER, address, str(process_locks.lock_key("atlas"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        assert acquire_lock("atlas") is None
        holder.kill()
        killed_at = time.monotonic()
        lock = acquire_lock("atlas", timeout=10)

    assert time.monotonic() - killed_at < 5
    lock.release()


def test_asking_about_a_lock_ends_only_a_lost_connection(monkeypatch):
    own, other = Mock(), Mock()
    monkeypatch.setattr(process_locks, "_connect", lambda: own)
    monkeypatch.setattr(process_locks, "_select", lambda *_: True)
    monkeypatch.setattr(process_locks, "PING_SECONDS", 0.0)
    locks = process_locks._LockConnection()

    assert locks.acquire("atlas") is own
    assert (locks.is_held(own), locks.is_held(other)) == (True, False)
    own.close.assert_not_called()
    own.is_usable.return_value = False
    assert (locks.is_held(other), locks.is_held(own)) == (False, False)
    own.close.assert_called_once()
