"""A soak test with the real nanobot, a person and a worker on one memory folder. ``bench/soak/soak.py`` runs it.

    python bench/soak/soak.py nanobot PYTHON_WITH_NANOBOT [MINUTES]        (nanobot-ai 0.3; 120 minutes)

nanobot talks, dreams (reads MEMORY.md, thinks for up to 20 seconds, writes all of it or one line), starts new
conversations and is killed. The worker that keeps the folder in sync is killed too. Meanwhile a person adds, rewords
and removes lines of MEMORY.md in the hub, on a text that is up to ten seconds old. The scripted model removes its own
lines only, so each line of the person that the person didn't remove must be in the memory, in a held change, or in a
rejected save.

Each message that nanobot finished and saved must be in the hub exactly once. nanobot throws a conversation away at
``/new``, so that is sent only after the hub has its messages. A worker that runs for half a minute must have imported
them; time without a running worker doesn't count. If it hasn't, the test waits for up to five minutes more, and
reports each message as late or as lost, with the load of the machine.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from django.db import connection
from django.utils import timezone

from bench.soak.nanobot_model import Message, nanobot_model, tool_call, write_config
from knowledge_app.models import HeldChange, MemoryDocument
from knowledge_app.services.documents.editing import save_text
from memoryhub.lib.errors import Conflict
from memoryhub.models import Process
from memoryhub.runs.review import approve, reject
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.syncing import sync_workspace
from sessions_app.models import Entry, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.syncing import switch_sync

ROOT = Path(__file__).resolve().parents[2]
PERSON, SYNC = Actor("person", "soak"), Actor("sync", "soak")
THINKING_SECONDS, PAGE_SECONDS, SYNC_SECONDS, LATE_SECONDS = 20.0, 10.0, 30.0, 300.0
MEMORY = "# Long-term Memory\n\n## Facts\n\n- The boat is called Marlin.\n\n## Notes\n\n- The harbour opens at six.\n"


class Soak:
    """One run of the test: the folder, what was said, and what the person owns."""

    def __init__(self, agent: Path) -> None:
        self.file = agent / "workspace" / "memory" / "MEMORY.md"
        self.sessions = agent / "sessions"
        self.said: set[str] = set()  # messages that nanobot finished and saved
        self.worker_since: float | None = None  # when the running worker was ready (monotonic seconds)
        self.longest_wait = 0.0
        self.owed: set[str] = set()  # the person's facts that the person didn't remove
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []

    def reply(self, request: dict[str, Any]) -> Message:
        """Answer a prompt of nanobot: text for a message, a read and a write of the memory for a dream."""
        is_dream = "You are running Dream" in str(request["messages"])
        tools_used = sum(message["role"] == "tool" for message in request["messages"])
        if not is_dream or tools_used > 1:
            return {"role": "assistant", "content": f"Noted, number {random.randrange(10**6)}."}
        if tools_used == 0:
            self.read = self.file.read_text()
            return tool_call("read_file", {"path": str(self.file)})
        text = self.read
        time.sleep(random.uniform(0, THINKING_SECONDS))
        self.counts["agent edits"] += 1
        fact = f"- Agent fact A{self.counts['agent edits']:06}."
        if random.random() < 0.3:
            old = random.choice(
                [line for line in text.split("\n") if line.startswith("- ")] or ["# Long-term Memory"]
            )
            return tool_call("edit_file", {"path": str(self.file), "old_text": old, "new_text": f"{old}\n{fact}"})
        return tool_call("write_file", {"path": str(self.file), "content": rewritten(text, fact)})

    def edit_as_a_person(self, stopping: Event) -> None:
        """Edit the memory in the hub until stopped, on a page that was opened a while before."""
        while not stopping.wait(random.uniform(0.2, 3)):
            document = MemoryDocument.objects.select_related("head").filter(name="MEMORY.md").first()
            if document is None or document.head is None:
                continue
            text, added, removed = edited(document.head.content, self.counts["person edits"])
            stopping.wait(random.uniform(0, PAGE_SECONDS))
            self.counts["person edits"] += 1
            by = By(PERSON, timezone.now())
            try:
                save_text(document, text, base_number=document.head.number, by=by, reason="soak")
            except Conflict as error:
                self.counts[f"refused: {error.code}"] += 1
                continue
            self.owed = (self.owed | added) - removed
            self.decide()
        connection.close()

    def decide(self) -> None:
        """Approve or reject a held change now and then; what a person rejects is the agent's."""
        if random.random() < 0.7:
            return
        for change in HeldChange.objects.filter(status=HeldChange.Status.PENDING).order_by("id"):
            self.counts["held"] += 1
            try:
                random.choice([approve, reject])(change, by=By(PERSON, timezone.now()))
            except Conflict:
                with suppress(Conflict):
                    reject(change, by=By(PERSON, timezone.now()))

    def remember(self, mark: str) -> None:
        """Note a finished message, if nanobot saved it."""
        if mark in self.saved():
            self.said.add(mark)
        else:
            self.counts["messages that nanobot finished but didn't save"] += 1

    def saved(self) -> set[str]:
        """Return the marked messages in nanobot's session files."""
        texts = [path.read_text() for path in self.sessions.glob("**/*.jsonl")]
        return set(re.findall(r"please note (M\d{6})", "\n".join(texts)))

    def wait_for_messages(self) -> None:
        """Wait until the hub has all finished messages, and report those that it doesn't have in time."""
        began = time.monotonic()
        while (absent := self.said - messages_in_hub().keys()) and self.worker_seconds(began) < SYNC_SECONDS:
            time.sleep(0.2)
        late_since = time.monotonic()
        while self.said - messages_in_hub().keys() and time.monotonic() - late_since < LATE_SECONDS:
            time.sleep(1)
        self.longest_wait = max(self.longest_wait, time.monotonic() - began)
        if absent:
            self.report(absent, time.monotonic() - late_since)

    def worker_seconds(self, began: float) -> float:
        """Return for how long the worker has been running, at most since ``began``."""
        since = self.worker_since
        return 0.0 if since is None else time.monotonic() - max(since, began)

    def report(self, absent: set[str], seconds: float) -> None:
        """Report messages that a running worker hadn't imported in time, ``seconds`` later."""
        found, saved = messages_in_hub().keys(), self.saved()
        load = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
        for mark in sorted(absent):
            place = "in nanobot's file" if mark in saved else "no longer in nanobot's file"
            what = f"late by {seconds:.0f} s" if mark in found else f"not in the hub {seconds:.0f} s later, {place}"
            self.faults.append(f"{mark} {what}; {load}")
        self.said &= found

    def missing(self) -> list[str]:
        """Return the person's facts that are neither in the memory nor in a change that waits for review."""
        document = MemoryDocument.objects.select_related("head").get(name="MEMORY.md")
        texts = [document.head.content if document.head else ""]
        texts += HeldChange.objects.filter(status=HeldChange.Status.PENDING).values_list("proposed", flat=True)
        return sorted(self.owed - set(re.findall(r"P\d{6}", "\n".join(texts))))


def rewritten(text: str, fact: str) -> str:
    """Return the text with a fact added at a random place, and sometimes without one of the agent's own lines."""
    lines = text.rstrip("\n").split("\n")
    own = [line for line in lines if "Agent fact" in line]
    if own and random.random() < 0.4:
        lines.remove(random.choice(own))
    places = [number + 1 for number, line in enumerate(lines) if line.startswith("- ")] or [len(lines)]
    lines.insert(random.choice([*places, len(lines)]), fact)
    return "\n".join(lines) + "\n"


def edited(text: str, number: int) -> tuple[str, set[str], set[str]]:
    """Return a person's edit of the text, with the marks of the facts that it adds and removes."""
    lines = text.rstrip("\n").split("\n")
    own = [place for place, line in enumerate(lines) if "Person fact" in line]
    mark = f"P{number:06}"
    kind, new = random.random(), f"- Person fact {mark}."
    if own and kind < 0.5:
        place = random.choice(own)
        removed = set(re.findall(r"P\d{6}", lines[place]))
        lines[place : place + 1] = [] if kind < 0.25 else [new]
        return "\n".join(lines) + "\n", set() if kind < 0.25 else {mark}, removed
    lines.insert(random.choice([len(lines), random.randrange(2, len(lines) + 1)]), new)
    return "\n".join(lines) + "\n", {mark}, set()


@contextmanager
def killed_now_and_then(soak: Soak, command: list[str], environment: dict[str, str]) -> Iterator[None]:
    """Run a worker during the block; kill it while it starts or 5 to 60 seconds later, and start it again."""
    stopping = Event()

    def keep() -> None:
        while not stopping.is_set():
            child = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE)
            if random.random() < 0.2:
                stopping.wait(random.uniform(0, 4))
            else:
                while not (stopping.is_set() or Process.objects.filter(kind="worker", pid=child.pid).exists()):
                    stopping.wait(0.2)
                soak.worker_since = time.monotonic()
                stopping.wait(random.uniform(5, 60))
            soak.worker_since = None
            child.send_signal(signal.SIGKILL)
            child.wait()
            Process.objects.filter(pid=child.pid).delete()
            soak.counts["workers killed"] += 1
        connection.close()

    thread = Thread(target=keep)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def talk(soak: Soak, command: list[str], environment: dict[str, str], ends_at: float) -> None:
    """Start nanobot, give it messages, and kill it in the middle of one, until the time is over."""
    while time.monotonic() < ends_at:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        child = subprocess.Popen(command, env=environment, text=True, **pipes)
        if child.stdin is None or child.stdout is None:
            raise RuntimeError("nanobot's pipes could not be opened")
        for _ in range(random.randrange(5, 15)):
            mark = f"M{soak.counts['messages']:06}"
            message = random.choices(["/dream", "/new", f"please note {mark}"], [2, 1, 7])[0]
            if message == "/new":
                soak.wait_for_messages()
            child.stdin.write(f"{message}\n")
            child.stdin.flush()
            if random.random() < 0.05 or time.monotonic() > ends_at:
                time.sleep(random.uniform(0, 3))
                break
            while (line := child.stdout.readline()) and line.strip() != "done":
                pass
            if line and mark in message:
                soak.remember(mark)
            soak.counts["messages"] += 1
        child.kill()
        child.wait()
        soak.counts["messages"] += 1
        soak.counts["nanobots killed"] += 1


def nanobot(python: str, minutes: int = 120) -> list[str]:
    agent = Path(tempfile.mkdtemp(prefix="memoryhub-nanobot-"))
    soak = Soak(agent)
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    environment["HOME"] = str(agent)
    with nanobot_model(soak.reply) as base_url:
        config = write_config(agent, base_url)
        soak.file.write_text(MEMORY)
        workspace = import_workspace(agent, by=By(SYNC, timezone.now()), name="nanobot").workspace
        switch_sync(workspace, follow=True, write_back=True, by=By(SYNC, timezone.now()))
        stopping = Event()
        person = Thread(target=soak.edit_as_a_person, args=(stopping,))
        person.start()
        worker = [sys.executable, "manage.py", "worker", "--until-stdin-closes", "--skip-checks"]
        driver = [python, str(ROOT / "bench" / "soak" / "nanobot_driver.py"), str(config)]
        with killed_now_and_then(soak, worker, dict(os.environ)):
            talk(soak, driver, environment, time.monotonic() + minutes * 60)
        stopping.set()
        person.join()
    for _ in range(4):
        sync_workspace(Workspace.objects.get(pk=workspace.pk), by=By(SYNC, timezone.now()))
    return soak.faults + result(soak)


def messages_in_hub() -> Counter[str]:
    """Return how often each marked message is in the hub."""
    contents = Entry.objects.filter(role="user", content__contains="please note M").values_list("content", flat=True)
    return Counter(mark for content in contents for mark in re.findall(r"please note (M\d{6})", content))


def result(soak: Soak) -> list[str]:
    found = messages_in_hub()
    lost = sorted(soak.said - set(found))
    twice = sorted(mark for mark, count in found.items() if count > 1)
    missing = soak.missing()
    print(
        f"{dict(soak.counts)}; {len(soak.said)} messages finished and saved, {len(found)} in the hub, at most "
        f"{soak.longest_wait:.0f} s after nanobot; {len(soak.owed)} of the person's facts remain, "
        f"{len(missing)} of them missing"
    )
    saved = soak.saved()
    faults = [f"lost message: {mark}, {'still' if mark in saved else 'not'} in nanobot's files" for mark in lost]
    faults += [f"message stored twice: {mark}" for mark in twice]
    return faults + [f"the person's fact is missing: {mark}" for mark in missing]
