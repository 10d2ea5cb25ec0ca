"""Soak tests with real processes: concurrent writers and killed workers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def soak(tmp_path, new_database) -> Callable[..., str]:
    """Run a soak test in another process, on this test's PostgreSQL database or a new SQLite file."""
    if connection.vendor == "sqlite":
        new_database(tmp_path / "soak.sqlite3")
    return lambda *arguments: _soak(tmp_path, *arguments)


def _soak(tmp_path: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DJANGO")}
    environment["DATABASE_URL"] = f"sqlite:///{tmp_path}/soak.sqlite3"
    if connection.vendor == "postgresql":
        values = connection.settings_dict
        place = f"{values['HOST']}:{values['PORT'] or 5432}/{values['NAME']}"
        environment["DATABASE_URL"] = f"postgres://{values['USER']}:{values['PASSWORD']}@{place}"
    done = subprocess.run(
        [sys.executable, "bench/soak/soak.py", *arguments],
        cwd=ROOT,
        env=environment | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_sixteen_concurrent_writers_cause_no_gaps_or_lock_errors(soak):
    assert "all checks passed" in soak("writers", "16", "15")


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_the_work_of_a_killed_worker_is_resumed(soak):
    assert "all checks passed" in soak("kills", "4")


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_four_concurrent_workers_lose_no_fact(soak):
    assert "8 of 8 facts present" in soak("consolidators", "8")


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_long_conversation_stays_within_budget_while_it_is_compressed(soak):
    assert "all checks passed" in soak("turns", "60")
