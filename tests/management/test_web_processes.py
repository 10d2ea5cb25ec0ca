"""`serve --processes`: several web processes on PostgreSQL."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from memoryhub.management import web_processes
from memoryhub.management.http_server import run_server, server_config
from memoryhub.management.web_processes import WebProcesses

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


FAILING = """
import socket
from memoryhub.management import http_server, web_processes

web_processes.FIRST_PAUSE = 0.01
if __name__ == "__main__":
    config = http_server.server_config("broken:application", workers=2, timeout_worker_healthcheck=1)
    served = web_processes.WebProcesses(config, sockets=[socket.create_server(("127.0.0.1", 0))])
    served.run()
    print(served.failure)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "said"),
    [("import os; os._exit(7)", "end soon after they start (status 7)"), ("raise SystemExit(3)", "can't start")],
)
def test_processes_that_end_at_once_are_given_up(broken, said, tmp_path):
    (tmp_path / "broken.py").write_text(broken)
    (tmp_path / "failing.py").write_text(FAILING)
    own = {"PYTHONPATH": f"{settings.BASE_DIR}{os.pathsep}{tmp_path}", "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
    command = [sys.executable, str(tmp_path / "failing.py")]
    ended = subprocess.run(
        command, env=os.environ | own, capture_output=True, text=True, timeout=2 * PATIENCE_SECONDS
    )

    assert said in ended.stdout, ended.stderr


def test_serve_ends_with_the_reason(monkeypatch):
    def give_up(served: WebProcesses) -> None:
        served.failure = "A web process can't start."

    monkeypatch.setattr("uvicorn.supervisors.multiprocess.SIGNALS", {})
    monkeypatch.setattr(WebProcesses, "run", give_up)
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        pytest.raises(CommandError, match="A web process can't start"),
    ):
        run_server(listener, processes=2)


@dataclass
class FakeProcess:
    pid: int
    exitcode: int | None = None


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """The time in seconds."""
    now = [1000.0]
    monkeypatch.setattr(web_processes.time, "monotonic", lambda: now[0])
    monkeypatch.setattr("uvicorn.supervisors.multiprocess.SIGNALS", {})
    return now


def restarts(clock, monkeypatch, processes: list[FakeProcess], *, lives: float) -> tuple[list[float], str]:
    """Return when processes were restarted that live for some seconds, and the failure, after ten minutes."""
    restarted: list[float] = []

    def restart(served: WebProcesses) -> None:
        for index, process in enumerate(served.processes):
            if process.exitcode is not None:
                restarted.append(clock[0] - 1000)
                served.processes[index] = FakeProcess(100 + len(restarted))

    monkeypatch.setattr(web_processes.Multiprocess, "keep_subprocess_alive", restart)
    served = WebProcesses(server_config("none:app", workers=2), sockets=[])
    served.processes = processes
    first_seen: dict[int, float] = {}
    while clock[0] < 1600 and not served.should_exit.is_set():
        for process in served.processes:
            if process.pid != 1 and clock[0] - first_seen.setdefault(process.pid, clock[0]) >= lives:
                process.exitcode = -11
        served.keep_subprocess_alive()
        clock[0] += 0.5
    return restarted, served.failure


def test_a_process_that_keeps_ending_is_restarted_more_and_more_slowly(clock, monkeypatch):
    restarted, failure = restarts(clock, monkeypatch, [FakeProcess(1), FakeProcess(2)], lives=0.5)

    pauses = [after - before for before, after in pairwise(restarted)]
    assert pauses[:4] == [3.0, 5.0, 9.0, 17.0]  # with the half second that it lives, and one to notice
    assert max(pauses) == 61.0
    assert failure == ""  # the other one answers


def test_all_processes_that_keep_ending_are_given_up(clock, monkeypatch):
    restarted, failure = restarts(clock, monkeypatch, [FakeProcess(2), FakeProcess(3)], lives=0.5)

    assert len(restarted) == 8
    assert "status -11" in failure


def test_a_process_that_ends_now_and_then_is_restarted_at_once(clock, monkeypatch):
    restarted, failure = restarts(clock, monkeypatch, [FakeProcess(2)], lives=70)

    assert restarted[:2] == [70.0, 140.5]
    assert failure == ""


@pytest.mark.skipif(connection.vendor != "sqlite", reason="refused on SQLite only")
def test_sqlite_has_one_web_process():
    with pytest.raises(CommandError, match="needs PostgreSQL"):
        call_command("serve", "--processes", "2")
