"""Soak tests with real processes: conversations with tools, killed workers, an agent that edits its own memory.

    python bench/soak/soak.py turns [COUNT] | kills [ROUNDS] | writers | consolidators
    python bench/soak/soak.py agent [EDITS] | killed-syncs [ROUNDS]        (see bench/soak/soak_sync.py)
    python bench/soak/soak.py rest [APPENDS]                               (see bench/soak/soak_rest.py)
    python bench/soak/soak.py nanobot PYTHON_WITH_NANOBOT [MINUTES]        (see bench/soak/soak_nanobot.py)

Each test creates its own hub and ends with check_memory. The exit status is 1 if anything is wrong. Set DATABASE_URL
to use another database than a new SQLite file.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ["MEMORYHUB_HOME"] = tempfile.mkdtemp(prefix="memoryhub-soak-")
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"
os.environ["MEMORYHUB_LLM_MODEL"] = "player"

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import close_old_connections, connection  # noqa: E402
from django.utils import timezone  # noqa: E402

from bench.scripted_model import running_model  # noqa: E402
from bench.soak.soak_nanobot import nanobot  # noqa: E402
from bench.soak.soak_rest import rest  # noqa: E402
from bench.soak.soak_sync import agent, killed_syncs  # noqa: E402
from knowledge_app.models import MemoryDocument  # noqa: E402
from memoryhub.conversations.appending import record_entries  # noqa: E402
from memoryhub.conversations.context import build_context  # noqa: E402
from memoryhub.integrity import check_memory  # noqa: E402
from sessions_app.models import Entry, Run, Session, Workspace  # noqa: E402
from sessions_app.services.audit import Actor, By  # noqa: E402
from sessions_app.services.compressing.compression import is_due  # noqa: E402
from sessions_app.services.parsing import read_batch  # noqa: E402
from sessions_app.services.runs import free_stuck_runs  # noqa: E402

AGENT = Actor("agent", "soak")
TEXT = "the label service scaled to four replicas before the carrier cut over and nobody noticed the queue"
WORDS = TEXT.split()


START_SECONDS = 30.0  # how long a worker may take to begin a run
RUN_SECONDS = 0.3  # about how long a run takes


@contextmanager
def worker(base_url: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {"MEMORYHUB_LLM_BASE_URL": base_url}
    command = [sys.executable, "manage.py", "worker", "--until-stdin-closes", "--skip-checks"]
    child = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield child
    finally:
        if child.poll() is None and child.stdin:
            child.stdin.close()
            child.wait(20)


def prose(count: int) -> str:
    return " ".join(random.choice(WORDS) for _ in range(count))


def turn(number: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"role": "user", "content": f"request {number}: {prose(random.randrange(5, 60))}"}]
    for step in range(random.randrange(4)):
        call = {"id": f"call_{step}", "type": "function", "function": {"name": "shell", "arguments": '{"c": "ls"}'}}
        rows.append({"role": "assistant", "content": "", "tool_calls": [call]})
        rows.append({"role": "tool", "tool_call_id": f"call_{step}", "content": prose(random.randrange(5, 400))})
    return [*rows, {"role": "assistant", "content": f"answer {number}: {prose(random.randrange(5, 80))}"}]


def append(workspace: Workspace, key: str, rows: list[dict[str, Any]], idempotency_key: str = "") -> None:
    now = timezone.now()
    records = read_batch(rows, now=now)
    record_entries(workspace, key, records, by=By(AGENT, now), idempotency_key=idempotency_key)


def context_faults(session: Session, budget: int) -> list[str]:
    """Return the faults of a context: over budget, a result without its call, a call without its results."""
    built = build_context(session, max_messages=0)
    faults = [f"{built.tokens} tokens, {budget} allowed"] if built.tokens > budget else []
    open_calls: set[str] = set()
    for message in built.messages:
        if message["role"] == "tool":
            faults += [] if message["tool_call_id"] in open_calls else ["a result without its call"]
            open_calls.discard(message["tool_call_id"])
        elif open_calls:
            faults.append("a call without all its results")
            open_calls = set()
        open_calls |= {call["id"] for call in message.get("tool_calls", [])}
    return faults


def ledger_faults(said: dict[str, list[str]]) -> list[str]:
    faults = []
    for key, contents in said.items():
        kept = list(Entry.objects.filter(session__key=key).order_by("position").values_list("content", flat=True))
        if kept != contents:
            faults.append(f"{key}: {len(kept)} entries kept, {len(contents)} appended, equal: {kept == contents}")
    return faults


def wait_for_runs(seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while Run.objects.filter(status__in=("queued", "running")).exists() and time.monotonic() < deadline:
        time.sleep(0.2)


def turns(count: int) -> list[str]:
    """One agent appends turns with tools while a worker compresses; every tenth reply of the model is bad."""
    workspace = Workspace.objects.create(slug="soak", name="Soak", max_tokens=20_000)
    said: list[str] = []
    faults: list[str] = []
    largest = 0
    started = time.perf_counter()
    with running_model(delay_seconds=0.05, share_of_bad=0.1) as base_url, worker(base_url):
        for number in range(count):
            rows = turn(number)
            append(workspace, "cli:soak", rows)
            said += [row["content"] for row in rows]
            session = Session.objects.select_related("workspace").get(key="cli:soak")
            faults += context_faults(session, workspace.max_tokens)
            largest = max(largest, build_context(session, max_messages=0).tokens)
            Run.objects.filter(status="queued").update(not_before=timezone.now())  # retry immediately
            for run in Run.objects.filter(status="parked"):
                Run.objects.filter(pk=run.pk).update(status="queued", attempt_count=0)
        deadline = time.monotonic() + 60
        while is_due(session) and time.monotonic() < deadline:
            wait_for_runs(5)
            session.refresh_from_db()
    runs = Run.objects.filter(status="done").count()
    folded = session.total_tokens - session.active_tokens
    print(
        f"{count} turns, {session.entry_count} entries in {time.perf_counter() - started:.0f} s: {runs} compressions,"
        f" {session.total_tokens:,} tokens = {session.active_tokens:,} active + {folded:,} compressed into "
        f"{session.summary_tokens:,}; the largest context had {largest:,} of {workspace.max_tokens:,}"
    )
    return faults + ledger_faults({"cli:soak": said})


def runs_begun() -> set[tuple[int, int]]:
    """Return the runs in progress, each with its fencing number, which each worker that takes the run increases."""
    return set(Run.objects.filter(status="running").values_list("pk", "fencing_number"))


def kills(rounds: int) -> list[str]:
    """A worker is killed a moment after it begins a run, and another one continues each time."""
    workspace = Workspace.objects.create(slug="soak", name="Soak", max_entries=20, recent_window=4)
    said: dict[str, list[str]] = {}
    faults: list[str] = []
    in_the_middle = 0
    with running_model(delay_seconds=0.1) as base_url:
        for number in range(rounds):
            for place in range(4):
                key = f"cli:{place}"
                for step in range(6):
                    rows = turn(number * 10 + step)
                    append(workspace, key, rows, f"{number}-{step}")
                    said.setdefault(key, []).extend(row["content"] for row in rows)
            before = runs_begun()
            with worker(base_url) as child:
                deadline = time.monotonic() + START_SECONDS
                while not runs_begun() - before and time.monotonic() < deadline:
                    time.sleep(0.02)
                time.sleep(random.uniform(0, RUN_SECONDS))
                child.send_signal(signal.SIGKILL)
                child.wait()
            in_the_middle += Run.objects.filter(status="running").exists()
            faults += [f"round {number}: {row}" for row in check_memory().broken]
        # Runs whose worker was killed too often are parked. A person would retry them.
        Run.objects.filter(status="parked").update(status="queued", attempt_count=0)
        with worker(base_url):
            wait_for_runs(120)
    left = Run.objects.exclude(status="done").values_list("pk", "status", "error")
    faults += [f"run {run} is {status}: {error}" for run, status, error in left]
    done = Run.objects.filter(status="done").count()
    print(f"{rounds} kills, {in_the_middle} of them during a run; {done} runs finished")
    faults += [] if in_the_middle else ["no kill hit a run"]
    return faults + ledger_faults(said)


def consolidators(sessions: int = 20, workers: int = 4) -> list[str]:
    """Several workers consolidate sessions of one workspace at once; each reply adds a different fact."""
    workspace = Workspace.objects.create(slug="soak", name="Soak", memory_window=20, auto_compress=False)
    for number in range(sessions):
        rows = [{"role": "user", "content": f"topic-{number:02} {prose(10)}"} for _ in range(30)]
        append(workspace, f"cli:{number}", rows)
    with ExitStack() as stack:
        base_url = stack.enter_context(running_model(delay_seconds=0.2))
        for _ in range(workers):
            stack.enter_context(worker(base_url))
        deadline = time.monotonic() + 120
        while Session.objects.filter(last_consolidated=0).exists() and time.monotonic() < deadline:
            Run.objects.filter(status="queued").update(not_before=timezone.now())
            time.sleep(0.2)
        wait_for_runs(60)
    document = MemoryDocument.objects.select_related("head").first()
    memory = document.head.content if document and document.head else ""
    missing = [f"topic-{number:02}" for number in range(sessions) if f"topic-{number:02} was" not in memory]
    pointers = set(Session.objects.values_list("last_consolidated", flat=True))
    done = Run.objects.filter(status="done").count()
    print(
        f"{workers} workers, {done} runs, {sessions - len(missing)} of {sessions} facts present, pointers {pointers}"
    )
    faults = [f"lost: {topic}" for topic in missing]
    return faults + ([] if pointers == {20} else [f"pointers at {pointers}"])


def writers(count: int = 16, batches: int = 200) -> list[str]:
    """Concurrent writers append to one session; half of them send everything twice."""
    workspace = Workspace.objects.create(slug="soak", name="Soak", auto_compress=False)
    append(workspace, "cli:shared", [{"role": "user", "content": "start"}])
    errors: list[str] = []
    waits: list[float] = []

    def write(number: int) -> None:
        for batch in range(batches):
            rows = [{"role": "user", "content": f"{number}-{batch}"}]
            for _ in range(1 + number % 2):
                started = time.perf_counter()
                try:
                    append(workspace, "cli:shared", rows, f"{number}-{batch}")
                except Exception as error:  # noqa: BLE001  any exception counts
                    errors.append(repr(error))
                waits.append(time.perf_counter() - started)
        connection.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(count)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = time.perf_counter() - started
    positions = list(Entry.objects.order_by("position").values_list("position", flat=True))
    waits.sort()
    print(
        f"{count} writers, {len(waits)} appends in {spent:.1f} s: {len(waits) / spent:.0f}/s, "
        f"p99 {waits[int(len(waits) * 0.99)] * 1000:.0f} ms, longest {waits[-1] * 1000:.0f} ms"
    )
    expected = list(range(1 + count * batches))
    return errors[:5] + ([] if positions == expected else [f"{len(positions)} entries, {len(expected)} expected"])


def main() -> None:
    what, *counts = sys.argv[1:] or ["turns"]
    soaks: dict[str, Callable[..., list[str]]] = {
        "turns": turns,
        "kills": kills,
        "writers": writers,
        "consolidators": consolidators,
        "agent": agent,
        "killed-syncs": killed_syncs,
        "rest": rest,
        "nanobot": nanobot,
    }
    defaults = {"turns": [2_000], "kills": [100]}
    call_command("migrate", verbosity=0)
    faults = soaks[what](*([int(one) if one.isdigit() else one for one in counts] or defaults.get(what, [])))
    free_stuck_runs(timezone.now())
    faults += [str(row) for row in check_memory().broken]
    close_old_connections()
    for fault in faults[:20]:
        print(f"FAULT {fault}")
    print("all checks passed" if not faults else f"{len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
