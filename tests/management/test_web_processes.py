"""`serve --processes`: several web processes on PostgreSQL."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

PATIENCE_SECONDS = 60


@pytest.fixture
def hub(transactional_db, tmp_path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    database = connection.settings_dict
    place = f"{database['USER']}:{database['PASSWORD']}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORYHUB_", "DATABASE"))}
    environment = kept | {
        "DATABASE_URL": f"postgres://{place}",
        "DJANGO_SETTINGS_MODULE": "memoryhub.settings",
        "MEMORYHUB_HOME": str(tmp_path),
        "MEMORYHUB_SECRET_KEY": settings.SECRET_KEY,
    }
    command = [sys.executable, "manage.py", "serve", "--port", "0", "--no-worker", "--processes", "2"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            greeting = ""
            for line in process.stdout:
                greeting += line
                if line.startswith("Press Ctrl-C"):
                    break
            yield process, re.findall(r"MemoryHub is running at (\S+)", greeting)[0]
        finally:
            process.kill()


def children_of(process: subprocess.Popen[str]) -> set[int]:
    """Return the web processes that ``serve`` started."""
    pids = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return {int(pid) for pid in pids if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()}


def wait_until_gone(pids: set[int]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, "a web process is still running"
        time.sleep(0.05)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one web process")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_several_processes_answer_and_end_together(hub, how):
    process, address = hub
    assert httpx2.get(f"{address}/health/", timeout=PATIENCE_SECONDS).status_code == 200
    children = children_of(process)
    assert len(children) == 2

    process.send_signal(how)

    process.wait(PATIENCE_SECONDS)
    wait_until_gone(children)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="refused on SQLite only")
def test_sqlite_has_one_web_process():
    with pytest.raises(CommandError, match="needs PostgreSQL"):
        call_command("serve", "--processes", "2")
