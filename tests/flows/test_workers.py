"""Real processes on a real database: writers at once, and a worker that is killed in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

ROOT = Path(__file__).resolve().parent.parent.parent


def soak(tmp_path: Path, *arguments: str) -> str:
    """Run a soak in a process of its own: on this test's PostgreSQL database, or on a new SQLite file."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DJANGO")}
    environment.pop("DATABASE_URL", None)
    if connection.vendor == "postgresql":
        values = connection.settings_dict
        place = f"{values['HOST']}:{values['PORT'] or 5432}/{values['NAME']}"
        environment["DATABASE_URL"] = f"postgres://{values['USER']}:{values['PASSWORD']}@{place}"
    done = subprocess.run(
        [sys.executable, "bench/soak.py", *arguments],
        cwd=ROOT,
        env=environment | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return done.stdout


@pytest.mark.django_db(transaction=True)
def test_sixteen_writers_leave_no_gap_and_see_no_lock_error(tmp_path):
    assert "all promises hold" in soak(tmp_path, "writers", "16", "15")


@pytest.mark.django_db(transaction=True)
def test_a_killed_worker_costs_nothing_and_its_work_is_taken_up(tmp_path):
    assert "all promises hold" in soak(tmp_path, "kills", "6")


@pytest.mark.django_db(transaction=True)
def test_four_workers_on_one_memory_lose_no_fact(tmp_path):
    assert "12 of 12 facts present" in soak(tmp_path, "consolidators", "12")


@pytest.mark.django_db(transaction=True)
def test_a_long_conversation_stays_within_its_budget_while_a_worker_folds_it(tmp_path):
    assert "all promises hold" in soak(tmp_path, "turns", "120")
