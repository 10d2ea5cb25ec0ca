"""The hub, the client and the servers of bench/drills/drills.py."""

from __future__ import annotations

import http.client
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60.0


class Missing(Exception):
    """This machine lacks what a drill needs."""


def environment_of(home: Path, database: str = "") -> dict[str, str]:
    own = {"MEMORYHUB_HOME": str(home), "DATABASE_URL": database, "MEMORYHUB_SECRET_KEY": "of all drills"}
    return os.environ | own


def run_manage(home: Path, *arguments: str, database: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", *arguments]
    environment = environment_of(home, database)
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def manage(home: Path, *arguments: str, database: str = "") -> Any:
    """Return what a command prints as JSON. Raises AssertionError if it fails."""
    done = run_manage(home, *arguments, "--json", database=database)
    assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr or done.stdout}"
    return json.loads(done.stdout)


IMPORT = """
from django.contrib.auth.models import User
from memoryhub.sync.import_requests import request_import
request_import(path={path!r}, user=User.objects.get_or_create(username="drill")[0])
"""


def request_import(home: Path, agent: Path) -> None:
    """Let the worker import an agent's folder, as the page does."""
    done = run_manage(home, "shell", "--command", IMPORT.format(path=str(agent)))
    assert done.returncode == 0, done.stderr


def check_memory(home: Path, database: str = "") -> list[Any]:
    broken: list[Any] = manage(home, "check_memory", database=database)["broken"]
    return broken


def stored(home: Path, database: str = "") -> list[str]:
    """Return the contents of all entries, those of a session in order."""
    query = "SELECT content FROM sessions_app_entry ORDER BY session_id, position"
    if database:
        import psycopg

        with psycopg.connect(database) as server:
            return [row[0] for row in server.execute(query)]
    with sqlite3.connect(home / "memoryhub.sqlite3", timeout=20) as own:
        rows = own.execute(query).fetchall()
    own.close()
    return [row[0] for row in rows]


def ask(home: Path, query: str) -> int:
    """Return the number that a query of the SQLite database returns."""
    with sqlite3.connect(home / "memoryhub.sqlite3", timeout=20) as own:
        (number,) = own.execute(query).fetchone()
    own.close()
    return int(number)


def wait_until(what: str, is_true: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> float:
    """Wait until a condition is true, and return how many seconds that took."""
    began = time.monotonic()
    while not is_true():
        assert time.monotonic() - began < seconds, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.05)
    return time.monotonic() - began


class Hub:
    """A hub in a process of its own, which can be killed with its worker and started again."""

    def __init__(
        self,
        home: Path,
        *,
        database: str = "",
        worker: bool = False,
        environment: dict[str, str] | None = None,
        waits: bool = True,
    ) -> None:
        self.home, self.database, self.worker = home, database, worker
        self.environment = environment_of(home, database) | (environment or {})
        self.address = ""
        home.mkdir(parents=True, exist_ok=True)
        self.start(waits=waits)

    def __enter__(self) -> Hub:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, *, waits: bool = True) -> None:
        port = self.address.rpartition(":")[2] or "0"  # the same as before
        command = [sys.executable, "manage.py", "serve", "--port", port, *([] if self.worker else ["--no-worker"])]
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  it is open as long as the hub
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            start_new_session=True,
        )
        if waits:
            self.wait_until_started()

    def wait_until_started(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.search(r"MemoryHub is running at http://(\S+)", line):
                self.address = found[1].rstrip("/")
            if line.startswith("Press Ctrl-C"):
                return
        self.log.seek(0)
        raise AssertionError(f"the hub ended: {self.log.read().decode()[-300:]}")

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the hub and its worker."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def get(self, path: str) -> int:
        with suppress(OSError), open_connection(self.address) as caller:
            caller.request("GET", path)
            return caller.getresponse().status
        return 0


@contextmanager
def open_connection(address: str) -> Iterator[http.client.HTTPConnection]:
    caller = http.client.HTTPConnection(address, timeout=30)
    try:
        yield caller
    finally:
        caller.close()


class Writer:
    """An agent that appends to a session of its own, without retries, and keeps what was acknowledged."""

    def __init__(self, hub: Hub, name: str = "writer") -> None:
        self.hub, self.name = hub, name
        self.acknowledged: list[str] = []
        self.tried: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.seconds: list[float] = []
        self.last_headers: dict[str, str] = {}
        with suppress(AssertionError):  # another writer created it
            manage(hub.home, "workspace", "create", "drill", database=hub.database)
        made = manage(
            hub.home, "token", "make", "drill", name, "--scopes", "read,append", "--per-minute", "60000",
            database=hub.database,
        )  # fmt: skip
        self.token = made["token"]

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def append(self) -> int:
        """Append one entry; return the status, 0 without a reply."""
        text = f"{self.name} says {len(self.tried)}"
        self.tried.append(text)
        body = json.dumps({"session": self.name, "entries": [{"role": "user", "content": text}]})
        began = time.monotonic()
        status = self._send("POST", "/api/v1/entries", body, secrets.token_hex(8))
        self.seconds.append(time.monotonic() - began)
        if status == 201:
            self.acknowledged.append(text)
            status = 200
        self.statuses[status] += 1
        return status

    def read(self) -> int:
        return self._send("GET", f"/api/v1/context?session={quote(self.name)}")

    def write_for(self, seconds: float) -> Counter[int]:
        """Append for so many seconds; return the statuses."""
        end, statuses = time.monotonic() + seconds, Counter[int]()
        while time.monotonic() < end:
            statuses[self.append()] += 1
        return statuses

    def try_until(self, is_enough: Callable[[int], bool]) -> Counter[int]:
        statuses = Counter[int]()
        while not is_enough(status := self.append()):
            statuses[status] += 1
            assert statuses.total() < 5000, f"answered {dict(statuses)}"
        statuses[status] += 1
        return statuses

    def resume(self) -> float:
        """Return after how many seconds an append succeeds."""
        return wait_until("an append that succeeds", lambda: self.append() == 200)

    def _send(self, method: str, path: str, body: str | None = None, key: str = "") -> int:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        headers |= {"Idempotency-Key": key} if key else {}
        try:
            with open_connection(self.hub.address) as caller:
                caller.request(method, path, body, headers)
                reply = caller.getresponse()
                reply.read()
        except (OSError, http.client.HTTPException):
            return 0
        self.last_headers = {name.lower(): value for name, value in reply.headers.items()}
        return reply.status


@contextmanager
def failing_calls(hub: Hub, error: str, when: str) -> Iterator[Callable[[], int]]:
    """Let system calls on the SQLite database's files fail: those that ``when`` says, counted in each thread.

    Yields a function that returns how many have failed.
    """
    if not shutil.which("strace"):
        raise Missing("strace isn't installed")
    calls = "pwrite64,fsync,fdatasync,ftruncate"
    files = [argument for end in ("", "-wal") for argument in ("-P", str(hub.home / f"memoryhub.sqlite3{end}"))]
    command = ["strace", "-f", "-p", str(hub.process.pid), "-e", f"trace={calls}", *files]
    command += ["-e", f"inject={calls}:error={error}:when={when}"]
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, stderr=log) as tracer:

        def said() -> bytes:
            log.seek(0)
            return log.read()

        wait_until("strace", lambda: b"attached" in said() or tracer.poll() is not None)
        try:
            yield lambda: said().count(b"(INJECTED)")
        finally:
            tracer.send_signal(signal.SIGINT)


@contextmanager
def small_disk(folder: Path, *, megabytes: int) -> Iterator[Path]:
    """Mount a file system in memory of so many megabytes."""
    home = folder / "home"
    home.mkdir()
    if os.getuid() or sys.platform != "linux":
        raise Missing("mounting a small disk needs root on Linux")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(home)], check=True)
    try:
        yield home
    finally:
        subprocess.run(["umount", "--lazy", str(home)], check=True)


class Postgres:
    """A PostgreSQL server with its own data folder and port."""

    def __init__(self, folder: Path) -> None:
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
        if not programs:
            raise Missing("PostgreSQL's server isn't installed")
        self.programs, self.data = programs[-1], folder / "postgres"
        self.as_user: dict[str, Any] = {} if os.getuid() else {"user": "postgres", "group": "postgres"}
        folder.chmod(0o755)
        self.data.mkdir(mode=0o700)
        if not os.getuid():
            shutil.chown(self.data, "postgres", "postgres")
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.address = f"postgres://memoryhub@127.0.0.1:{self.port}/postgres"
        self.run("initdb", "--username=memoryhub", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
        self.start()

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), "--pgdata", str(self.data), *arguments]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(command, check=True, cwd="/", **quiet, **self.as_user)

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c shared_buffers=32MB"
        self.run("pg_ctl", "--wait", "--silent", "--log", str(self.data / "log"), "--options", options, "start")

    def kill(self) -> None:
        """Kill the server with SIGKILL, and wait until its processes have ended."""
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        with suppress(ProcessLookupError):
            os.killpg(os.getpgid(pid), signal.SIGKILL)

    def stop(self) -> None:
        self.run("pg_ctl", "--wait", "--silent", "--mode", "immediate", "stop")


@contextmanager
def running_postgres(folder: Path) -> Iterator[Postgres]:
    server = Postgres(folder)
    try:
        yield server
    finally:
        server.stop()
