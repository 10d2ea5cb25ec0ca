"""Kill each part of a cluster in turn under a mixed load, and compare what was acknowledged with what is stored.

    python bench/drills/cluster.py [PART ...] [--folder FOLDER] [--port PORT] [--keep]

Starts deploy/cluster/cluster.py in a new folder, with the packages that it names. Eight agents append with the Python
client, read their context and search, and workers export the workspace. Meanwhile the primary, a standby, etcd's
leader, haproxy, pgbouncer, Redis, a hub and a worker are killed with SIGKILL, and started again as systemd would: a
part without a substitute after 2 seconds, a machine after 10. A probe without retries appends ten times a second and
tells how long the hub was away. Exit status 1 if an acknowledged append is lost or duplicated, an export fails, or
check_memory finds anything.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "deploy" / "cluster")]

from cluster import Cluster, wait_for  # noqa: E402  (deploy/cluster/cluster.py)

AGENTS = 8
PAUSE_SECONDS = 0.1  # of an agent between its calls: two cores also run fourteen servers
PROBE_SECONDS = 0.1
SETTLED_SECONDS = 7.0  # without an error of the probe, before the next kill; longer than Retry-After
PARTS = {  # what is killed, and after how many seconds it is started again
    "primary": 10.0,
    "standby": 10.0,
    "etcd-leader": 10.0,
    "haproxy": 2.0,
    "pgbouncer": 2.0,
    "redis": 2.0,
    "hub1": 10.0,
    "worker1": 10.0,
}


@dataclass
class Ledger:
    """What the clients saw."""

    acknowledged: dict[str, int] = field(default_factory=dict)  # content, position
    tried: set[str] = field(default_factory=set)
    longest: float = 0.0  # seconds of an append, with its retries
    errors: Counter[str] = field(default_factory=Counter)
    outages: list[tuple[float, float]] = field(default_factory=list)  # begin and end, of the probe
    probed_at: float = 0.0  # the last success of the probe


class Drill:
    def __init__(self, address: str, tokens: list[str]) -> None:
        self.address, self.tokens, self.ledger = address, tokens, Ledger()
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.probe, args=(tokens[-1],))]
        self.threads += [threading.Thread(target=self.talk, args=item) for item in enumerate(tokens[:-1])]

    def talk(self, number: int, token: str) -> None:
        """Append as an agent: with retries, and now and then a context or a search."""
        from memoryhub.client import MemoryHub, MemoryHubError

        with MemoryHub(self.address, token, timeout=15, retries=30, patience=180) as hub:
            turn = 0
            while not self.stopping.wait(PAUSE_SECONDS):
                turn += 1
                text, began = f"agent {number} says {turn}", time.monotonic()
                self.ledger.tried.add(text)
                try:
                    position = hub.append(f"agent:{number}", text)["first"]
                    self.ledger.acknowledged[text] = position
                    if turn % 5 == 0:
                        hub.context(f"agent:{number}", max_messages=20)
                    if turn % 20 == 0:
                        hub.search(f"says {turn - 1}", limit=5)
                except MemoryHubError as error:
                    self.ledger.errors[f"{error.status} {error.code}"] += 1
                self.ledger.longest = max(self.ledger.longest, time.monotonic() - began)

    def probe(self, token: str) -> None:
        """Append without retries, and note from when until when that failed."""
        from memoryhub.client import MemoryHub, MemoryHubError

        number, failed_at = 0, 0.0
        with MemoryHub(self.address, token, timeout=3, retries=0) as hub:
            while not self.stopping.wait(PROBE_SECONDS):
                number, began = number + 1, time.monotonic()
                self.ledger.tried.add(text := f"probe {number}")
                try:
                    self.ledger.acknowledged[text] = hub.append("probe", text)["first"]
                except MemoryHubError as error:
                    self.ledger.errors[f"{error.status} {error.code}"] += 1
                    failed_at = failed_at or began
                    continue
                self.ledger.probed_at = time.monotonic()
                if failed_at:
                    self.ledger.outages.append((failed_at, self.ledger.probed_at))
                    failed_at = 0.0

    def settle(self) -> None:
        """Wait until the probe has succeeded for some seconds."""

        def is_calm() -> bool:
            last = self.ledger.outages[-1][1] if self.ledger.outages else 0.0
            now = time.monotonic()
            return now - last > SETTLED_SECONDS and now - self.ledger.probed_at < 1

        wait_for("a hub that answers", is_calm, 120)

    def kill(self, cluster: Cluster, part: str, seconds: float) -> str:
        """Kill a part, start it again after so many seconds, and return a line about it."""
        name, began = wait_for(part, lambda: cluster.find(part)), time.monotonic()
        retried, self.ledger.longest = self.ledger.longest, 0.0
        appended = len(self.ledger.acknowledged)
        cluster.kill(name)
        time.sleep(seconds)
        cluster.start()
        self.settle()
        away = [end - start for start, end in self.ledger.outages if end > began]
        count = len(self.ledger.acknowledged) - appended
        waited, self.ledger.longest = self.ledger.longest, max(retried, self.ledger.longest)
        shown = f"{part} ({name})" if part != name else part
        return (
            f"{shown}: away for {max(away, default=0.0):.1f} s, {sum(away):.1f} s in all; "
            f"the longest append took {waited:.1f} s with its retries; {count:,} acknowledged meanwhile"
        )


def differences(ledger: Ledger) -> list[str]:
    """Return the faults of the stored entries: lost, duplicated, moved, gaps."""
    from django.db import connection

    from sessions_app.models import Entry, Session

    connection.close()  # it may have been lost in one of the kills
    stored: dict[str, list[int]] = {}
    faults = []
    for session in Session.objects.all():
        rows = list(Entry.objects.filter(session=session).order_by("position").values_list("content", "position"))
        for content, position in rows:
            stored.setdefault(content, []).append(position)
        if [position for _, position in rows] != list(range(len(rows))):
            faults.append(f"session {session.key} has gaps in its positions")
    lost = [text for text in ledger.acknowledged if text not in stored]
    doubled = [text for text, positions in stored.items() if len(positions) > 1]
    moved = [text for text, at in ledger.acknowledged.items() if text in stored and stored[text] != [at]]
    unknown = set(stored) - ledger.tried
    print(
        f"{len(ledger.acknowledged):,} appends acknowledged: {len(lost)} lost, {len(doubled)} duplicated, "
        f"{len(moved)} at another position; {len(set(stored) - set(ledger.acknowledged))} stored without a reply"
    )
    for what, texts in {"lost": lost, "duplicated": doubled, "moved": moved, "invented": unknown}.items():
        faults += [f"{what}: {text}" for text in list(texts)[:5]]
    return faults


def prepare() -> tuple[list[str], Callable[[], object]]:
    """Create a workspace with a token for each client; return the tokens, and what requests an export."""
    from django.utils import timezone

    from memoryhub.agents.api_tokens import issue_token
    from memoryhub.jobs.queue import request_job
    from sessions_app.models import Workspace
    from sessions_app.services.audit import Actor, By

    workspace = Workspace.objects.create(slug="drill", name="Drill")

    def by() -> By:
        return By(Actor("person", "drill"), timezone.now())

    names = [*(f"agent-{number}" for number in range(AGENTS)), "probe"]
    tokens = [issue_token(workspace, name, ["read", "append"], by=by(), per_minute=6000)[1] for name in names]
    return tokens, lambda: request_job("export", workspace, {"layout": "hub"}, by=by())


def request_exports(request: Callable[[], object], stopping: threading.Event) -> None:
    """Give the workers something to do. A request that fails during an outage isn't repeated."""
    from django.db import DatabaseError, connection

    while not stopping.wait(3):
        with suppress(DatabaseError):
            request()
        connection.close()


def check_end() -> list[str]:
    """Wait for the last exports; return the faults of jobs and of check_memory."""
    from memoryhub.integrity import check_memory
    from memoryhub.models import Job

    wait_for("the end of all exports", lambda: not Job.objects.filter(kind="export", finished_at=None).exists(), 120)
    exports = Counter(Job.objects.filter(kind="export").values_list("status", flat=True))
    print(f"exports: {dict(exports)}")
    broken = [str(row) for row in check_memory().broken]
    print(f"check_memory: {len(broken)} faults")
    return broken + [f"{count} exports are {status}" for status, count in exports.items() if status != "done"]


def run(cluster: Cluster, parts: list[str]) -> list[str]:
    os.environ |= cluster.environment("drill") | {"DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
    import django

    django.setup()
    tokens, request = prepare()
    drill = Drill(f"http://127.0.0.1:{cluster.port('hubs')}", tokens)
    drill.threads.append(threading.Thread(target=request_exports, args=(request, drill.stopping)))
    for thread in drill.threads:
        thread.start()
    try:
        time.sleep(SETTLED_SECONDS)
        drill.settle()
        for part in parts:
            print(drill.kill(cluster, part, PARTS[part]), flush=True)
    finally:
        drill.stopping.set()
        for thread in drill.threads:
            thread.join()
    print(f"replies other than success: {dict(drill.ledger.errors)}")
    return differences(drill.ledger) + check_end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to kill (default: each part)")
    parser.add_argument("--folder", type=Path, help="a new folder (default: a temporary one)")
    parser.add_argument("--port", type=int, default=18400)
    parser.add_argument("--keep", action="store_true", help="leave the cluster running")
    given = parser.parse_args()
    cluster = Cluster(given.folder or Path(tempfile.mkdtemp(prefix="memoryhub-cluster-")), given.port)
    try:
        cluster.start()
        faults = run(cluster, given.parts or list(PARTS))
    finally:
        if not given.keep:
            cluster.stop()
    for fault in faults[:20]:
        print(f"BROKEN {fault}")
    print(
        f"all checks passed; the cluster's files are in {cluster.folder}" if not faults else f"{len(faults)} faults"
    )
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
