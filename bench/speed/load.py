"""Load a hub over HTTP, and compare it with Django inserting one row on the same server (bench/speed/load_floor.py).

    python bench/speed/load.py [SECONDS]      # of each point, 10 by default
    DATABASE_URL=postgres://... python bench/speed/load.py 5 --processes 2

It measures SQLite, or an empty PostgreSQL database: appends in a closed loop with 1 to 64 clients, each with a
session of its own in one workspace; the other calls with one client; a mixed load of 16 clients; and appends in an
open loop at half the rate that 16 clients reached, timed from when each was due. CPU is that of the web processes
(not of PostgreSQL) in milliseconds for each call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = (1, 4, 16, 64)
TALK, OBSERVATIONS = 200, 2_000
QUERIES = [f"harbour {word}" for word in ("tide", "lamp", "crane", "rope", "bell", "quay", "mast", "gull")]
MIX = ("append", "append", "append", "context", "recall", "poll")
GOAL_RATIO, GOAL_SPREAD = 2.5, 4.0
TICKS = os.sysconf("SC_CLK_TCK")
Call = Callable[[int, int], bytes]  # client and number of the call → request


class Point(NamedTuple):
    """What one load measured: seconds of each call, calls a second, milliseconds of CPU for each call."""

    taken: list[float]
    rate: float
    cpu: float

    def line(self) -> str:
        p99 = quantiles(self.taken, n=100)[-1] if len(self.taken) > 1 else self.taken[0]
        p50 = median(self.taken)
        times = f"p50 {p50 * 1000:7.1f} ms   p99 {p99 * 1000:7.1f} ms {p99 / p50:5.1f}x"
        return f"{self.rate:8.0f}/s {self.cpu:7.2f} ms CPU   {times}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", nargs="?", type=float, default=10.0)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as home:
        os.environ |= {"MEMORYHUB_HOME": home, "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        os.environ.setdefault("DATABASE_URL", "")
        sys.path.insert(0, str(ROOT))
        with serving_floor() as (address, pid):
            floor = {
                clients: load(address, pid, {"append": append("none")}, clients, given.seconds) for clients in (1, 16)
            }
        more = [] if given.processes == 1 else ["--processes", str(given.processes)]
        with serving_hub(more) as (address, pid):
            token, cookie, polled = prepare()
            load(address, pid, {"append": append(token)}, 4, 1)  # until all processes have started
            measure(address, pid, calls(token, cookie, polled), floor, given.seconds)


def measure(address: str, pid: int, known: dict[str, Call], floor: dict[int, Point], seconds: float) -> None:
    for clients, point in floor.items():
        print(f"floor, {clients:>2} clients   {point.line()}")
    points = {}
    for clients in CLIENTS:
        points[clients] = load(address, pid, {"append": known["append"]}, clients, seconds)
        print(f"append, {clients:>2} clients  {points[clients].line()}", flush=True)
    ratio = floor[16].rate / points[16].rate
    print(f"floor / hub with 16 clients: {ratio:.1f} (goal: {GOAL_RATIO}); CPU {points[1].cpu / floor[1].cpu:.1f}")
    for name, call in known.items():
        if name != "append":
            print(f"{name + ', 1 client':<18} {load(address, pid, {name: call}, 1, seconds / 2).line()}", flush=True)
    mixed = {f"{place} {name}": known[name] for place, name in enumerate(MIX)}
    print(f"mixed, 16 clients  {load(address, pid, mixed, 16, seconds).line()}")
    rate = points[16].rate / 2
    point = load(address, pid, {"append": known["append"]}, 16, seconds, rate=rate)
    print(f"append, open loop  {point.line()}   (goal of p99 / p50: {GOAL_SPREAD})")


def load(address: str, pid: int, mix: dict[str, Call], clients: int, seconds: float, *, rate: float = 0.0) -> Point:
    """Send calls from so many connections: one after the other, or (``rate``) so many a second in total."""
    taken: list[float] = []
    calls_of = list(mix.values())
    numbers, begun = count(), time.perf_counter()

    async def client(place: int) -> None:
        url = urlsplit(address)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        while (now := time.perf_counter()) < begun + seconds:
            number = next(numbers)
            due = begun + number / rate if rate else now
            if due > begun + seconds:
                break
            await asyncio.sleep(max(0.0, due - now))
            writer.write(calls_of[number % len(calls_of)](place, number))
            await read_answer(reader)
            taken.append(time.perf_counter() - due)
        writer.close()

    async def all_clients() -> None:
        await asyncio.gather(*(client(place) for place in range(clients)))

    used = cpu_of(pid)
    asyncio.run(all_clients())
    elapsed = time.perf_counter() - begun
    return Point(taken, len(taken) / elapsed, (cpu_of(pid) - used) / len(taken) * 1000)


async def read_answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    body = await reader.readexactly(int(found[1])) if found else b""
    if head.split(b" ", 2)[1][:1] != b"2":
        raise SystemExit(f"{head.decode()}{body.decode(errors='replace')[:500]}")


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU of a process and its children."""
    used = 0.0
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        used = (int(fields[11]) + int(fields[12])) / TICKS
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            used += sum(cpu_of(int(child)) for child in children.read_text().split())
    return used


def request(method: str, place: str, header: str, body: object = None) -> bytes:
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {place} HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}\r\n"
    if data:
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    return f"{head}\r\n".encode() + data


def append(token: str) -> Call:
    header = f"Authorization: Bearer {token}"

    def call(client: int, number: int) -> bytes:
        entry = {"role": "user", "content": f"The crane at quay {number} moved the crates of ship {number % 97}"}
        return request("POST", "/api/v1/entries", header, {"session": f"load:{client}", "entries": [entry]})

    return call


def calls(token: str, cookie: str, polled: str) -> dict[str, Call]:
    header = f"Authorization: Bearer {token}"
    return {
        "append": append(token),
        "context": lambda _, __: request("GET", "/api/v1/context?session=cli%3Atalk", header),
        "recall": lambda _, n: request("GET", f"/api/v1/recall?query={QUERIES[n % 8].replace(' ', '+')}", header),
        "poll": lambda _, __: request("GET", polled, f"Cookie: sessionid={cookie}\r\nHX-Request: true"),
    }


def prepare() -> tuple[str, str, str]:
    """Fill a workspace; return a token, a signed-in person's cookie, and the address that an open page polls."""
    import django

    django.setup()
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client
    from django.utils import timezone

    from bench.bulk_rows import update_statistics
    from bench.corpus import Writer
    from knowledge_app.models import Observation
    from memoryhub.agents.api_tokens import SCOPES, issue_token
    from memoryhub.conversations.appending import record_entries
    from memoryhub.lib.search.index_maintenance import bulk_indexing
    from sessions_app.models import AuditRecord, Workspace
    from sessions_app.services.audit import Actor, By
    from sessions_app.services.parsing import read_batch

    workspace = Workspace.objects.create(slug="load", name="Load", auto_compress=False)
    by, writer = By(Actor("person", "bench"), timezone.now()), Writer()
    texts = writer.texts(OBSERVATIONS + TALK)
    said = [
        Observation(workspace=workspace, uid=f"o{n}", category="finding", content=f"{QUERIES[n % 8]} {text}")
        for n, text in enumerate(texts[TALK:])
    ]
    with bulk_indexing(connection, Observation._meta.db_table):
        Observation.objects.bulk_create(said, batch_size=500)
    talk = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts[:TALK])]
    record_entries(workspace, "cli:talk", read_batch(talk, now=by.at), by=by)
    token = issue_token(workspace, "bench", list(SCOPES), by=by, per_minute=60_000)[1]
    update_statistics()
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.create_superuser("bench"))
    polled = f"/w/load/changes/?after={AuditRecord.objects.latest('id').pk}"
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    connection.close()
    return token, cookie, polled


@contextmanager
def serving_hub(more: list[str]) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "manage.py", "serve", "--port", "0", "--no-worker", *more]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            greeting = "".join(iter(process.stdout.readline, "Press Ctrl-C to stop.\n"))
            found = re.search(r"MemoryHub is running at (\S+)", greeting)
            assert found is not None, greeting
            yield found[1], process.pid
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def serving_floor() -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    database = os.environ["DATABASE_URL"] or f"sqlite:///{os.environ['MEMORYHUB_HOME']}/floor.sqlite3"
    environment = os.environ | {"DATABASE_URL": database}
    command = [sys.executable, str(ROOT / "bench" / "speed" / "load_floor.py"), str(port)]
    with subprocess.Popen(command, env=environment) as process:
        try:
            while process.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    main()
