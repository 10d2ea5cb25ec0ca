"""Soak test in which sixteen agents append to one session over REST, through two web processes.

Each client records what was acknowledged; every one of these entries must exist exactly once, at the position in the
response. In the second round, half of the clients send each call, hang up without reading the response, and send it
again with the same idempotency key. One of the two processes is killed and restarted meanwhile, and its clients must
recover. ``bench/soak/soak.py`` runs it.
"""

from __future__ import annotations

import http.client
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import httpx2
from django.db import connection
from django.utils import timezone

from memoryhub.agents.api_tokens import issue_token
from memoryhub.client import MemoryHub, MemoryHubError
from sessions_app.models import Entry, Workspace
from sessions_app.services.audit import Actor, By

ROOT = Path(__file__).resolve().parents[2]
CLIENTS, BATCHES, BATCH = 16, 20, 100
KEY = "api:shared"
KILLED_AT = 0.4  # share of the round's entries
BAD_LINE = re.compile(r"is locked|deadlock|Traceback|ERROR", re.IGNORECASE)


@dataclass
class Ledger:
    """What all clients of one round saw."""

    acknowledged: dict[str, int] = field(default_factory=dict)  # content, position
    answers: list[float] = field(default_factory=list)  # seconds
    calls: list[float] = field(default_factory=list)  # seconds of an append, including retries
    hung_up: int = 0
    without_answer: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass
class Web:
    process: subprocess.Popen[str]
    address: str


@dataclass(frozen=True)
class Round:
    name: str
    count: int  # of appends, for each client
    size: int  # entries in each
    disturbed: bool = False


class Watching(httpx2.HTTPTransport):
    """Records responses and calls without one; with ``hangs_up``, first sends each call and hangs up."""

    def __init__(self, ledger: Ledger, *, hangs_up: bool) -> None:
        super().__init__()
        self.ledger, self.hangs_up = ledger, hangs_up

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.hangs_up:
            send_and_hang_up(request, self.ledger)
        began = time.perf_counter()
        try:
            response = super().handle_request(request)
            text = response.read()
        except httpx2.TransportError:
            self.ledger.without_answer += 1
            raise
        self.ledger.answers.append(time.perf_counter() - began)
        if response.status_code >= 400 or b"is locked" in text:
            self.ledger.faults.append(f"response {response.status_code} {text[:200].decode(errors='replace')}")
        return response


def send_and_hang_up(request: httpx2.Request, ledger: Ledger) -> None:
    """Send a complete request and close the connection before, while or after the hub handles it."""
    caller = http.client.HTTPConnection(request.url.host, request.url.port, timeout=10)
    with suppress(OSError):  # the process may have been killed
        caller.request(request.method, request.url.path, request.content, dict(request.headers))
        ledger.hung_up += 1
        time.sleep(random.choice((0, 0.005, 0.05)))
    caller.close()


def rest(singles: int = 200) -> list[str]:
    """Run three rounds: single appends, single appends with forced retries and a kill, and batches."""
    workspace = Workspace.objects.create(slug="soak", name="Soak", auto_compress=False)
    now, person = timezone.now(), Actor("person", "soak")
    token = issue_token(workspace, "soak", ["append"], by=By(person, now), per_minute=60_000)[1]
    rounds = [Round("single", singles, 1), Round("twice", singles, 1, disturbed=True), Round("batch", BATCHES, BATCH)]
    faults: list[str] = []
    acknowledged: dict[str, int] = {}
    with tempfile.TemporaryFile("w+") as log:
        with serving(log) as webs:
            for one in rounds:
                ledger = append_all(webs, one, token, log)
                faults += ledger.faults
                acknowledged |= ledger.acknowledged
        log.seek(0)
        faults += [f"in a log: {line.strip()}" for line in log if BAD_LINE.search(line)]
    expected = CLIENTS * sum(one.count * one.size for one in rounds)
    print(f"{expected:,} entries on {connection.vendor}; final load average {os.getloadavg()[0]:.1f}")
    return faults + storage_faults(acknowledged, expected)


@contextmanager
def serving(log: IO[str]) -> Iterator[list[Web]]:
    webs = [start(0, log), start(0, log)]
    try:
        yield webs
    finally:
        for web in webs:
            web.process.terminate()
            web.process.wait(30)


def start(port: int, log: IO[str]) -> Web:
    command = [sys.executable, "manage.py", "serve", "--port", str(port), "--no-worker"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    found = re.search(
        r"MemoryHub is running at (\S+)", "".join(iter(process.stdout.readline, "Press Ctrl-C to stop.\n"))
    )
    assert found is not None, "the hub didn't start"
    return Web(process, found[1])


def append_all(webs: list[Web], one: Round, token: str, log: IO[str]) -> Ledger:
    """Run all clients, half of them through each process, and print the figures."""
    ledger = Ledger()
    began = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool, killing(webs, ledger, one, log) if one.disturbed else nullcontext():
        for number in range(CLIENTS):
            hangs_up = one.disturbed and number % 4 > 1
            watching = Watching(ledger, hangs_up=hangs_up)
            hub = MemoryHub(webs[number % 2].address, token, retries=20, transport=watching)
            pool.submit(append_own, hub, ledger, one, number)
        pool.shutdown()
        spent = time.perf_counter() - began
    entries = len(ledger.acknowledged)
    print(
        f"{one.name}: {CLIENTS} clients, {entries:,} entries in batches of {one.size} in {spent:.1f} s,"
        f" {entries / spent:,.0f}/s; a response takes {shown(ledger.answers)}, an append {shown(ledger.calls)};"
        f" {ledger.hung_up} hung up, {ledger.without_answer} without a response"
    )
    return ledger


def append_own(hub: MemoryHub, ledger: Ledger, one: Round, number: int) -> None:
    """Make the appends of one client, and record the acknowledged position of each entry."""
    with hub:
        for place in range(one.count):
            texts = [f"{one.name} {number}-{place}-{index}" for index in range(one.size)]
            began = time.perf_counter()
            try:
                answer = hub.append(KEY, [{"role": "user", "content": text} for text in texts])
            except MemoryHubError as error:
                ledger.faults.append(f"{one.name}: {error.code} {error}")
                continue
            ledger.calls.append(time.perf_counter() - began)
            ledger.acknowledged |= zip(texts, range(answer["first"], answer["last"] + 1), strict=True)


@contextmanager
def killing(webs: list[Web], ledger: Ledger, one: Round, log: IO[str]) -> Iterator[None]:
    """Kill one of the processes while the clients are running, and restart it at the same address."""

    def kill() -> None:
        while len(ledger.acknowledged) < KILLED_AT * CLIENTS * one.count * one.size:
            time.sleep(0.01)
        webs[0].process.send_signal(signal.SIGKILL)
        webs[0].process.wait()
        began = time.perf_counter()
        webs[0] = start(int(webs[0].address.rpartition(":")[2]), log)
        print(f"killed one of the two processes; restarted after {time.perf_counter() - began:.1f} s")

    killer = threading.Thread(target=kill)
    killer.start()
    yield
    killer.join()


def shown(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    middle, late = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    return f"{middle * 1000:.0f} ms (p99: {late * 1000:.0f}, longest: {ordered[-1] * 1000:.0f})"


def storage_faults(acknowledged: dict[str, int], expected: int) -> list[str]:
    """Return how the stored entries differ from the acknowledged ones: lost, duplicated, moved, gaps."""
    kept = list(Entry.objects.filter(session__key=KEY).order_by("position").values_list("position", "content"))
    faults = [] if len(acknowledged) == expected else [f"{len(acknowledged)} acknowledged, {expected} expected"]
    if [position for position, _ in kept] != list(range(expected)):
        faults.append(f"{len(kept)} entries stored, {expected} expected, or gaps in their positions")
    if {content: position for position, content in kept} != acknowledged:
        faults.append("entries are lost, duplicated or at other positions than acknowledged")
    return faults
