#!/usr/bin/env python3
"""Run a whole cluster on one machine, from Debian's packages, to try it and to break it.

    deploy/cluster/cluster.py start|status|stop [--folder FOLDER] [--port PORT]
    deploy/cluster/cluster.py kill PART [--folder FOLDER]

PART is a name that `status` shows, or `primary`, `standby` or `etcd-leader`. `start` also restarts what was killed.
Everything is in FOLDER (default: a folder of this user in the temporary folder), and all ports are counted up from
PORT (default: 17400). Needs the packages postgresql, patroni, etcd-server, haproxy, pgbouncer and redis-server.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import Any
from urllib.request import urlopen

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ADDRESS = "127.0.0.1"
ETCD = ["etcd1", "etcd2", "etcd3"]
POSTGRES = ["postgres1", "postgres2", "postgres3"]
HUBS = ["hub1", "hub2"]
WORKERS = ["worker1", "worker2"]
PARTS = [*ETCD, *POSTGRES, "haproxy", "pgbouncer", "redis", *HUBS, *WORKERS]  # in the order of their start
PORTS = [*PARTS, "primary", "hubs", *(f"{name}_peer" for name in ETCD), *(f"{name}_api" for name in POSTGRES)]
PATIENCE_SECONDS = 120.0


class Cluster:
    """The files, ports and processes of a cluster in one folder."""

    def __init__(self, folder: Path, port: int = 17400) -> None:
        self.folder = own_folder(folder)
        self._saved = self.folder / "values.json"  # with the passwords
        self.values: dict[str, str] = json.loads(self._saved.read_text()) if self._saved.exists() else {}
        if not self.values:
            self.values = {f"{name}_port": str(port + number) for number, name in enumerate(PORTS)}
            self.values |= {"address": ADDRESS, "folder": str(self.folder)}
            self.values |= {"password": secrets.token_hex(16), "secret_key": secrets.token_urlsafe(48)}
            self.values["postgres_programs"] = str(newest_postgres())
            self.values["etcd_hosts"] = ",".join(f"{ADDRESS}:{self.port(name)}" for name in ETCD)
            members = [f"{name}=http://{ADDRESS}:{self.port(f'{name}_peer')}" for name in ETCD]
            self.values["etcd_members"] = ",".join(members)

    def port(self, name: str) -> int:
        return int(self.values[f"{name}_port"])

    def start(self) -> None:
        """Start every part that isn't running, and wait until both hubs answer."""
        self._write_files()
        self._start(ETCD)
        wait_for("etcd's leader", lambda: self.etcd_leader())
        self._start(POSTGRES)
        wait_for("a primary", lambda: self.member("leader"))
        self._start(["haproxy", "redis"])
        self._create_database()
        self._start(["pgbouncer", *HUBS])  # one of the hubs migrates the database
        for name in HUBS:
            wait_for(name, lambda name=name: self._with(name)._answers(self.port(name), "/health/"))
        wait_for("both standbys", lambda: self._with(*HUBS, *WORKERS).is_whole())

    def stop(self) -> None:
        """Stop every part, the last one first, and wait for its end."""
        for name in reversed(PARTS):
            if self.is_running(name):
                pid, _ = self._process(name)
                os.kill(pid, signal.SIGTERM)
                with suppress(TimeoutError):
                    wait_for(f"the end of {name}", lambda name=name: not self.is_running(name), 20)
            self.kill(name)

    def kill(self, name: str) -> None:
        """Kill a part and its children with SIGKILL, as if its machine was lost."""
        sessions = {self._process(name)[0]} - {0}
        data = self.folder / "data" / name
        with suppress(OSError, ValueError, IndexError):  # PostgreSQL has a session of its own
            pid = int((data / "postmaster.pid").read_text().split()[0])
            if Path(f"/proc/{pid}/cwd").samefile(data):  # otherwise another process has that id now
                sessions.add(pid)
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.getsid(int(process.name)) in sessions:
                    os.kill(int(process.name), signal.SIGKILL)

    def find(self, part: str) -> str:
        """Return the name of the part with a role: primary, standby or etcd-leader; "" if there is none now."""
        roles: dict[str, Callable[[], str]] = {
            "primary": lambda: self.member("leader"),
            "standby": lambda: self.member("sync_standby"),
            "etcd-leader": self.etcd_leader,
        }
        return roles[part]() if part in roles else part

    def is_whole(self) -> bool:
        """Return whether all parts run, and PostgreSQL has two standbys."""
        return all(self.is_running(name) for name in PARTS) and all(
            self.member(role) for role in ("leader", "sync_standby", "replica")
        )

    def is_running(self, name: str) -> bool:
        pid, started = self._process(name)
        return bool(pid) and started_at(pid) == started

    def member(self, role: str) -> str:
        """Return the running PostgreSQL node with a role: leader, sync_standby or replica; "" if there is none."""
        for node in POSTGRES:
            for found in self._ask(self.port(f"{node}_api"), "/cluster").get("members", []):
                if (found["role"], found["state"] in ("running", "streaming")) == (role, True):
                    return str(found["name"])
        return ""

    def etcd_leader(self) -> str:
        for name in ETCD:
            if self._ask(self.port(name), "/v2/stats/self").get("state") == "StateLeader":
                return name
        return ""

    def environment(self, name: str) -> dict[str, str]:
        """Return the settings of a hub or worker, with a home of its own."""
        lines = (self.folder / "config" / "memoryhub.env").read_text().splitlines()
        given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        return {**given, "MEMORYHUB_HOME": str(self.folder / name)}

    def _answers(self, port: int, path: str) -> bool:
        return bool(self._ask(port, path))

    @staticmethod
    def _ask(port: int, path: str) -> Any:
        """Return the JSON that a part answers; an empty dict without an answer."""
        with suppress(OSError, ValueError), urlopen(f"http://{ADDRESS}:{port}{path}", timeout=3) as reply:
            return json.load(reply)
        return {}

    def _write_files(self) -> None:
        for name in ("config", "data", "log", "run", "files"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self._write(self._saved, json.dumps(self.values, indent=2))
        users = f'"memoryhub" "{self.values["password"]}"\n'
        self._write(self.folder / "config" / "users.txt", users)
        for name in PARTS:
            own = {
                "name": name,
                **{kind: self.values.get(f"{name}_{kind}", "") for kind in ("port", "api_port", "peer_port")},
            }
            if template := template_of(name):
                self._write(self.folder / "config" / f"{name}{template.suffix}", self._filled(template, own))
        for name in ("memoryhub.env", "database.sql"):
            self._write(self.folder / "config" / name, self._filled(HERE / name))
        if os.getuid() == 0:  # PostgreSQL and pgbouncer don't run as root
            owner = pwd.getpwnam("postgres")
            for path in (self.folder / "data", *(self.folder / "config").iterdir()):
                os.chown(path, owner.pw_uid, owner.pw_gid)

    def _filled(self, template: Path, own: dict[str, str] | None = None) -> str:
        return Template(template.read_text()).substitute(self.values | (own or {}))

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.touch(mode=0o600)
        path.write_text(text)

    def _with(self, *names: str) -> Cluster:
        """Start again what has ended, as systemd does: a hub or worker ends if the database is away at its start."""
        self._start([*names])
        return self

    def _start(self, names: list[str]) -> None:
        for name in names:
            if self.is_running(name):
                continue
            self.kill(name)  # what is left of it
            with (self.folder / "log" / f"{name}.log").open("ab") as log:
                process = subprocess.Popen(
                    self._command(name),
                    cwd=ROOT if name in HUBS + WORKERS else "/",
                    env=os.environ | self.environment(name) if name in HUBS + WORKERS else None,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    **(
                        {}
                        if name in HUBS + WORKERS or os.getuid()
                        else {"user": "postgres", "group": "postgres", "extra_groups": []}
                    ),
                )
            self._write(self.folder / "run" / f"{name}.pid", f"{process.pid} {started_at(process.pid)}")

    def _command(self, name: str) -> list[str]:
        template = template_of(name)
        config = str(self.folder / "config" / f"{name}{template.suffix}") if template else ""
        manage = [sys.executable, str(ROOT / "manage.py")]
        if name in ETCD:
            return ["etcd", "--config-file", config]
        if name in POSTGRES:
            return ["patroni", config]
        if name in HUBS:
            return [*manage, "serve", "--no-worker", "--host", ADDRESS, "--port", str(self.port(name))]
        if name in WORKERS:
            return [*manage, "worker"]
        return {
            "haproxy": ["/usr/sbin/haproxy", "-db", "-f", config],
            "pgbouncer": ["/usr/sbin/pgbouncer", config],
            "redis": ["redis-server", config],
        }[name]

    def _process(self, name: str) -> tuple[int, str]:
        """Return the process id and start time of a part that was started, otherwise 0 and ""."""
        try:
            pid, started = (self.folder / "run" / f"{name}.pid").read_text().split()
        except (OSError, ValueError):
            return 0, ""
        return (int(pid), started) if started_at(int(pid)) == started else (0, "")

    def _create_database(self) -> None:
        psql = [
            f"{self.values['postgres_programs']}/psql",
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--host",
            ADDRESS,
        ]
        psql += ["--port", str(self.port("primary")), "--username", "postgres", "--dbname", "postgres"]
        environment = os.environ | {"PGPASSWORD": self.values["password"]}

        def exists() -> str:
            done = subprocess.run(
                [*psql, "--command", "SELECT count(*) FROM pg_database WHERE datname = 'memoryhub'"],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            return done.stdout.strip()

        wait_for("the primary behind haproxy", exists)
        if exists() == "0":
            file = str(self.folder / "config" / "database.sql")
            subprocess.run([*psql, "--set", "ON_ERROR_STOP=1", "--file", file], env=environment, check=True)


def template_of(name: str) -> Path | None:
    kind = "patroni" if name in POSTGRES else name.rstrip("123")
    return next((path for path in HERE.glob(f"{kind}.*") if path.suffix in (".yml", ".cfg", ".ini", ".conf")), None)


def newest_postgres() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    if not found:
        sys.exit("PostgreSQL's server isn't installed. Install the packages that --help names.")
    return found[-1]


def started_at(pid: int) -> str:
    """Return the start time of a process in clock ticks since boot; "" if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def wait_for(what: str, found: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
    """Wait until something is true, and return it. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"Waited {seconds:.0f} s for {what}.")
        time.sleep(0.2)
    return value


def own_folder(folder: Path) -> Path:
    """Create a folder, or check that nobody else can write into it: its files decide what is run.

    Root lets others through but not list it, because PostgreSQL doesn't run as root.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        sys.exit(f"{folder} isn't a folder of your own, or others can write into it. Choose one with --folder.")
    folder.chmod(0o700 if os.getuid() else 0o711)
    return folder.resolve()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["start", "stop", "status", "kill"])
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / f"memoryhub-cluster-{os.getuid()}"
    )
    parser.add_argument("--port", type=int, default=17400)
    given = parser.parse_args()
    cluster = Cluster(given.folder, given.port)
    if given.action == "start":
        missing = [name for name in ("etcd", "patroni", "redis-server") if shutil.which(name) is None]
        if missing:
            sys.exit(f"Not installed: {', '.join(missing)}. --help names the packages.")
        cluster.start()
        print(
            f"The cluster is running at http://{ADDRESS}:{cluster.port('hubs')}; its files are in {cluster.folder}."
        )
    elif given.action == "stop":
        cluster.stop()
    elif given.action == "kill":
        name = cluster.find(given.part)
        if name not in PARTS:
            sys.exit(
                f"There is no part {given.part!r} now. Parts: primary, standby, etcd-leader, {', '.join(PARTS)}."
            )
        cluster.kill(name)
        print(f"{name} was killed.")
    else:
        roles = {cluster.member("leader"): "primary", cluster.member("sync_standby"): "synchronous standby"}
        roles[cluster.etcd_leader()] = "leader"
        for name in PARTS:
            state = "running" if cluster.is_running(name) else "stopped"
            print(f"{name:<10} {cluster.port(name)}  {state}  {roles.get(name, '')}".rstrip())


if __name__ == "__main__":
    main()
