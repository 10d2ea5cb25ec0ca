"""Soak tests in which an agent and the hub edit the same memory file. ``bench/soak/soak.py`` runs them.

At the end, the token of every edit by the agent must be in the file, in a revision or in a held change, unless the
agent itself saw it and overwrote it (``simulated_agent.py`` keeps that ledger). Text of the hub that the agent
overwrites isn't lost, because each save in the hub is a revision. The number of the hub's last saves that are still
in the file is printed too.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.utils import timezone

from knowledge_app.models import HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.editing import save_text
from memoryhub.lib.errors import MemoryHubError
from memoryhub.runs.review import approve, reject
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.syncing import sync_workspace
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.syncing import switch_sync

ROOT = Path(__file__).resolve().parents[2]
PERSON, SYNC = Actor("person", "soak"), Actor("sync", "soak")


def agent(edits: int = 2_400) -> list[str]:
    """An agent edits MEMORY.md every 50 ms and the hub saves it every 100 ms, with constant syncing."""
    workspace, file = shared_file()
    stopping = threading.Event()
    counts: Counter[str] = Counter()
    keeper = threading.Thread(target=sync_repeatedly, args=(workspace, stopping, counts))
    keeper.start()
    ledger = file.parent.parent / "ledger.json"
    with editing(file, ledger, edits) as editor:
        while editor.poll() is None:
            save_in_hub(counts["saves"], counts)
            decide(counts)
            time.sleep(0.1)
    stopping.set()
    keeper.join()
    for _ in range(4):
        decide(counts)
        sync_workspace(workspace, by=By(SYNC, timezone.now()))
    return faults_of_sharing(file, ledger, counts)


def killed_syncs(rounds: int = 50) -> list[str]:
    """A syncing process is killed at random moments while the agent and the hub continue to edit."""
    workspace, file = shared_file()
    ledger = file.parent.parent / "ledger.json"
    counts: Counter[str] = Counter()
    faults: list[str] = []
    with editing(file, ledger, 10**6, "--rename-only") as editor:
        for _ in range(rounds):
            connection.close()
            child = os.fork()
            if child == 0:
                sync_repeatedly(workspace, threading.Event(), Counter())
            ends_at = time.monotonic() + random.uniform(0.1, 1.2)
            while time.monotonic() < ends_at:
                save_in_hub(counts["saves"], counts)
                decide(counts)
                faults += [] if file.read_text().endswith("END\n") else ["MEMORY.md is incomplete"]
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            counts["killed"] += 1
            counts["left_behind"] += len(leftovers(file))
            with suppress(MemoryHubError):
                sync_workspace(workspace, by=By(SYNC, timezone.now()))
            faults += [f"left over after the next sync: {name}" for name in leftovers(file)]
        editor.terminate()
        editor.wait()
    for _ in range(4):
        decide(counts)
        sync_workspace(workspace, by=By(SYNC, timezone.now()))
    return faults + faults_of_sharing(file, ledger, counts)


def shared_file() -> tuple[Workspace, Path]:
    """Return a workspace with write-back on, and its MEMORY.md, which has lines of the agent and of the hub."""
    settings.MEMORYHUB_QUIET_SECONDS = 0.02  # an agent that writes every 50 ms is never quiet for a second
    file = Path(tempfile.mkdtemp(prefix="memoryhub-agent-")) / "memory" / "MEMORY.md"
    file.parent.mkdir()
    lines = [f"- {who} fact {number:02}: at first" for number in range(40) for who in ("agent", "hub")]
    file.write_text("\n".join(["# Memory", "", *lines, "", "END", ""]))
    workspace = import_workspace(file.parent.parent, by=By(SYNC, timezone.now()), name="Soak").workspace
    switch_sync(workspace, write_back=True, by=By(SYNC, timezone.now()))
    return Workspace.objects.get(pk=workspace.pk), file


@contextmanager
def editing(file: Path, ledger: Path, edits: int, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        sys.executable,
        str(ROOT / "bench" / "soak" / "simulated_agent.py"),
        str(file),
        str(ledger),
        str(edits),
        *options,
    ]
    child = subprocess.Popen(command)
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def sync_repeatedly(workspace: Workspace, stopping: threading.Event, counts: Counter[str]) -> None:
    while not stopping.is_set():
        try:
            result = sync_workspace(workspace, by=By(SYNC, timezone.now()), wait=False)
        except MemoryHubError as error:
            counts[error.code] += 1
            continue
        counts["syncs"] += 1
        counts["written"] += sum(one.verdict == "written" for one in result.written)
        counts["taken"] += result.tally.updated["documents"]
    connection.close()


def save_in_hub(number: int, counts: Counter[str]) -> None:
    document = MemoryDocument.objects.select_related("head").get()
    head = document.head
    if head is None:
        return
    place = f"- hub fact {number % 40:02}: "
    text = "\n".join(f"{place}h{number:06}" if line.startswith(place) else line for line in head.content.split("\n"))
    try:
        save_text(document, text, base_number=head.number, by=By(PERSON, timezone.now()), reason="soak")
    except MemoryHubError as error:
        counts[error.code] += 1
    counts["saves"] += 1


def decide(counts: Counter[str]) -> None:
    """Approve and reject held changes in turn."""
    for change in HeldChange.objects.filter(status=HeldChange.Status.PENDING).order_by("id"):
        counts["held"] += 1
        try:
            resolve = approve if counts["held"] % 2 else reject
            resolve(change, by=By(PERSON, timezone.now()))
        except MemoryHubError:
            with suppress(MemoryHubError):
                reject(change, by=By(PERSON, timezone.now()))


def leftovers(file: Path) -> list[str]:
    return [name for name in os.listdir(file.parent) if ".memoryhub-" in name]


def faults_of_sharing(file: Path, ledger: Path, counts: Counter[str]) -> list[str]:
    edited = json.loads(ledger.read_text())
    texts = [file.read_text()]
    texts += MemoryRevision.objects.values_list("content", flat=True)
    texts += HeldChange.objects.values_list("proposed", flat=True)
    known = set(re.findall(r"a\d{6}-\d+", "\n".join(texts)))
    lost = [token for token in edited["owed"] if token not in known]
    empty = sum(not text.strip() for text in texts)
    in_hub = sum(f"h{counts['saves'] - back:06}" in texts[0] for back in range(1, 41))
    print(
        f"{edited['edits']} edits by the agent ({edited['replaced']} overwritten by it, {len(edited['owed'])} owed), "
        f"{dict(counts)}; {len(texts) - 1} texts kept; {in_hub} of the hub's last 40 saves are in the file"
    )
    faults = [f"lost: {token}" for token in lost] + [f"{empty} empty texts"] * bool(empty)
    faults += [f"the agent read {edited['torn']} incomplete texts"] * bool(edited["torn"])
    return faults + [f"left over: {name}" for name in leftovers(file)]
