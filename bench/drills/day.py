"""A day in an hour: 20 agents and 5 people use one hub, while it syncs, sweeps, backs up and restores.

    python bench/drills/day.py [MINUTES] [--svg FILE]

Ten agents talk over REST, ten others write nanobot's files, which the hub follows in both directions. A scripted
model compresses and consolidates. People read pages, add facts to the agents' documents and decide what is held.
Every tenth of the time a backup is created, restored into another home and compared with what was acknowledged
before. The first one is restored into the hub itself. Every entry must exist once, in order, and every fact of a
person must be in its document. Exit status 1 if anything is missing.
"""

from __future__ import annotations

import argparse
import html
import json
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.drills.day_ledger import HELD, REVISIONS, Ledger, faults_of, rows  # noqa: E402
from bench.drills.day_report import Figures  # noqa: E402
from bench.drills.drill_hub import Hub, manage, run_manage, wait_until  # noqa: E402
from bench.drills.person import Person  # noqa: E402
from bench.scripted_model import WORDS, running_model  # noqa: E402
from memoryhub.client import MemoryHub  # noqa: E402

AGENTS, NAMES = 10, ["ada", "ben", "cleo", "dora", "emil"]
TURN_SECONDS, LOOK_SECONDS, PASSWORD = 6.0, 8.0, "a long pass phrase"
MEMORY = "# Memory\n\n## Facts\n\n- The boat is called Marlin.\n"
PREPARE = """
import io, json
from pathlib import Path
from django.contrib.auth.models import User
from django.core.management import call_command
def run(*words):
    call_command(*words, "--json", stdout=(out := io.StringIO()))
    return json.loads(out.getvalue())
for name in {names!r}:
    User.objects.create_superuser(name, password={password!r})
tokens = dict()
for slug in {slugs!r}:
    run("workspace", "create", slug)
    tokens[slug] = run("token", "make", slug, slug, "--per-minute", "6000")["token"]
for folder in {folders!r}:
    run("import_workspace", folder, "--layout", "nanobot", "--follow")
    run("sync", Path(folder).name, "--two-way")
print(json.dumps(tokens))
"""
PAGES = [
    "/",
    "/w/{}/",
    "/w/{}/sessions/",
    "/w/{}/search/?q=queue",
    "/w/{}/memory/{}/",
    "/w/{}/inbox/",
    "/w/{}/activity/",
]


def prose() -> str:
    return " ".join(random.choices(WORDS, k=random.randrange(5, 60)))


class Day:
    """The hub, what everybody said and wrote, and how long each call took."""

    def __init__(self, folder: Path, hub: Hub, seconds: float) -> None:
        self.folder, self.hub, self.figures = folder, hub, Figures(seconds)
        self.said: Ledger = defaultdict(list)
        self.facts: dict[str, list[str]] = defaultdict(list)  # workspace → lines of people
        self.written: dict[str, list[str]] = defaultdict(list)  # workspace → lines of the agent's file
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()
        self.ending, self.is_open = threading.Event(), True

    def every(self, seconds: float, step: Callable[[int], None]) -> None:
        """Repeat a step at this interval until the day ends."""
        number = 0
        while not self.ending.wait(random.uniform(0.5, 1.5) * seconds):
            try:
                step(number)
            except Exception as error:  # noqa: BLE001  any exception counts while the hub is there
                self.counts["away"] += not self.is_open
                if self.is_open:
                    self.note(f"{step.__qualname__}: {error!r}")
            number += 1

    def note(self, *faults: str) -> None:
        for fault in faults:
            print(f"FAULT {time.monotonic() - self.figures.begun:.0f} s: {fault}", flush=True)
            self.faults.append(fault)

    def timed(self, name: str, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        self.counts[name] += 1
        with self.figures.timed(name):
            return call(*given, **named)


def talk(day: Day, slug: str, token: str) -> Callable[[int], None]:
    """Return the turn of an agent that uses REST."""
    hub = MemoryHub(f"http://{day.hub.address}", token, retries=200, patience=600)

    def turn(number: int) -> None:
        key = f"cli:{number // 100}"
        texts = [f"{who} {number} of {slug}: {prose()}" for who in ("request", "answer")]
        entries = [{"role": role, "content": text} for role, text in zip(("user", "assistant"), texts, strict=True)]
        day.timed("append", hub.append, key, entries)
        day.said[slug, key] += texts
        day.timed("context", hub.context, key)
        if number % 5 == 0:
            day.timed("recall", hub.recall, "queue of the label service")

    return turn


def write(day: Day, slug: str, agent: Path) -> Callable[[int], None]:
    """Return the turn of an agent that writes nanobot's files, and edits its memory in every third turn."""
    memory = agent / "memory" / "MEMORY.md"

    def turn(number: int) -> None:
        key = f"cli:{number // 100}"
        file = agent / "sessions" / f"cli_{number // 100}.jsonl"
        lines = [] if file.exists() else [{"_type": "metadata", "key": key}]
        texts = [f"{who} {number} of {slug}: {prose()}" for who in ("request", "answer")]
        lines += [{"role": role, "content": text} for role, text in zip(("user", "assistant"), texts, strict=True)]
        with file.open("a") as out:
            out.write("".join(f"{json.dumps(line)}\n" for line in lines))
        day.said[slug, key] += texts
        if number % 3 == 0:
            fact = f"- {slug} used crane {number} of the quay"
            beside = memory.with_name("agents-own.tmp")
            beside.write_text(f"{memory.read_text().rstrip()}\n{fact}\n")
            beside.replace(memory)
            day.written[slug].append(fact)

    return turn


def use_pages(day: Day, name: str, documents: dict[str, int]) -> Callable[[int], None]:
    """Return what a person does at once: read a page, and in every fourth step add a fact, or decide."""
    person = Person(f"http://{day.hub.address}", name, PASSWORD)

    def look(number: int) -> None:
        slug, document = random.choice([*documents.items()])
        if number % 4 == 1:
            add_fact(day, person, (slug, document), f"- {name} prefers berth {number}")
        elif number % 4 == 3 and name == NAMES[0]:
            decide(day, person)
        else:
            day.timed("page", person.get, random.choice(PAGES).format(slug, document))

    return look


def add_fact(day: Day, person: Person, place: tuple[str, int], fact: str) -> None:
    """Add a line to a document on its page; on a conflict, begin again."""
    slug, document = place
    path = f"/w/{slug}/memory/{document}/edit/"
    for _ in range(5):
        page = day.timed("page", person.get, path).decode()
        form = re.search(r'name="base" value="(\d+)".*<textarea[^>]*>\n?(.*?)</textarea>', page, re.DOTALL)
        assert form is not None, f"{path} shows no form"
        text = f"{html.unescape(form[2]).rstrip()}\n{fact}\n"
        time.sleep(random.uniform(0, 4))  # others write meanwhile
        try:
            day.timed("save", person.submit, page, path, text=text, base=form[1])
        except HTTPError as error:
            if error.code != 422:
                raise
            day.counts["conflicts"] += 1
        else:
            day.facts[slug].append(fact)
            return
    raise AssertionError(f"couldn't save in {slug}")


def decide(day: Day, person: Person) -> None:
    """Accept what is held, unless it removes a fact of a person."""
    for slug, pk, proposed in rows(day.hub.home, HELD):
        answer = "accept" if set(day.facts[slug]) <= set(proposed.split("\n")) else "reject"
        path = f"/w/{slug}/review/{pk}/"
        day.timed("decide", person.post, f"{path}approve/", path, action="parts", decisions="1", all=answer)
        day.counts[answer] += 1


def watch_memory(day: Day) -> Callable[[int], None]:
    def look(_: int) -> None:
        for name, pid in (("web", day.hub.process.pid), ("worker", child_of(day.hub.process.pid))):
            if pid and (megabytes := resident(pid)):
                day.figures.note_memory(name, megabytes)

    return look


def child_of(pid: int) -> int:
    """Return the process that another one has started, 0 without one."""
    found = [word for file in Path(f"/proc/{pid}/task").glob("*/children") for word in file.read_text().split()]
    return int(found[0]) if found else 0


def resident(pid: int) -> float:
    """Return the resident megabytes of a process, 0 if it has ended."""
    with suppress(OSError, TypeError):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1000  # type: ignore[index]
    return 0.0


def back_up(day: Day, person: Person) -> Callable[[int], None]:
    """Return the step of the operator: back up by the page, restore elsewhere, and compare."""

    def step(number: int) -> None:
        if number == 0:
            restore_in_place(day)
        said = {place: texts for place, texts in copied(day.said).items() if place[0].startswith("rest")}
        facts = copied(day.facts)
        before = set(backups_of(day.hub.home))
        with day.figures.timed("backup"):
            person.post("/backups/make/", "/backups/")
            wait_until("a backup", lambda: set(backups_of(day.hub.home)) - before, 120)
        (backup,) = set(backups_of(day.hub.home)) - before
        home = day.folder / f"restored-{number}"
        home.mkdir()
        manage(home, "restore", str(backup), "--yes")
        day.note(*(f"backup {number}: {fault}" for fault in faults_of(home, said, facts, is_whole=False)))
        shutil.rmtree(home)
        day.counts["restored"] += 1

    return step


def backups_of(home: Path) -> list[Path]:
    return [file for file in (home / "backups").glob("*") if file.suffix != ".part"]


def restore_in_place(day: Day) -> None:
    """Stop the hub, back it up, restore the backup, and start it again."""
    day.is_open = False
    began = time.monotonic()
    day.hub.stop()
    made = manage(day.hub.home, "backup", str(day.folder))
    restored = manage(day.hub.home, "restore", made["file"], "--yes")
    for slug in restored["no_longer_written"]:
        manage(day.hub.home, "sync", slug, "--two-way")
    day.hub.start()
    print(f"restored into the hub itself; it was away for {time.monotonic() - began:.0f} s", flush=True)
    day.is_open = True


def copied(ledger: dict[Any, list[str]]) -> dict[Any, list[str]]:
    return {key: list(texts) for key, texts in list(ledger.items())}


def faults_of_files(home: Path, day: Day, agents: dict[str, Path]) -> list[str]:
    """Return which lines that an agent wrote are neither in its file nor in the hub, and which files differ."""
    revisions = rows(home, REVISIONS)
    faults = []
    for slug, agent in agents.items():
        text = (agent / "memory" / "MEMORY.md").read_text()
        known = {line for own, kept in revisions if own == slug for line in kept.split("\n")} | set(text.split("\n"))
        faults += [f"{slug}: lost {line!r}" for line in day.written[slug] if line not in known]
        missing = [line for line in day.facts[slug] if line not in text]
        day.counts["not delivered"] += len(missing)
    return faults


def prepare(folder: Path, home: Path) -> tuple[dict[str, str], dict[str, Path]]:
    """Create accounts, workspaces, tokens and followed folders; return the tokens and folders by workspace."""
    agents = {f"files-{number}": folder / f"files-{number}" for number in range(AGENTS)}
    for agent in agents.values():
        for name in ("memory", "sessions"):
            (agent / name).mkdir(parents=True)
        (agent / "memory" / "MEMORY.md").write_text(MEMORY)
    slugs = [f"rest-{number}" for number in range(AGENTS)]
    given = {"names": NAMES, "password": PASSWORD, "slugs": slugs, "folders": [*map(str, agents.values())]}
    home.mkdir()
    for command in (["migrate"], ["shell", "--command", PREPARE.format(**given)]):
        done = run_manage(home, *command)
        assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), agents


def live(day: Day, tokens: dict[str, str], agents: dict[str, Path]) -> None:
    """Let everybody work until the day has ended."""
    for token in tokens.values():
        with MemoryHub(f"http://{day.hub.address}", token) as hub:
            hub.write_document("MEMORY.md", MEMORY, base=0)
    document = "SELECT w.slug, d.id FROM knowledge_app_memorydocument d JOIN sessions_app_workspace w"
    documents = dict(rows(day.hub.home, f"{document} ON w.id = d.workspace_id WHERE d.name = 'MEMORY.md'"))
    steps = [(TURN_SECONDS, talk(day, slug, token)) for slug, token in tokens.items()]
    steps += [(TURN_SECONDS, write(day, slug, agent)) for slug, agent in agents.items()]
    steps += [(LOOK_SECONDS, use_pages(day, name, documents)) for name in NAMES]
    steps += [(day.figures.seconds / 120, watch_memory(day))]
    operator = Person(f"http://{day.hub.address}", NAMES[0], PASSWORD)
    steps += [(day.figures.seconds / 10, back_up(day, operator))]
    threads = [threading.Thread(target=day.every, args=step) for step in steps]
    for thread in threads:
        thread.start()
    time.sleep(day.figures.seconds)
    day.ending.set()
    for thread in threads:
        thread.join()


def wait_until_synced(day: Day, agents: dict[str, Path]) -> None:
    """Wait until the hub has the agents' lines and messages."""
    said = sum(len(texts) for (slug, _), texts in day.said.items() if slug in agents)
    query = "SELECT COUNT(*) FROM sessions_app_entry e JOIN sessions_app_workspace w ON w.id = e.workspace_id"
    own = f"{query} WHERE w.slug LIKE 'files-%'"
    with suppress(AssertionError):  # the comparison says what is missing
        wait_until("the last sync", lambda: rows(day.hub.home, own)[0][0] >= said, 90)
    time.sleep(35)  # every folder is synced once more


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("minutes", nargs="?", type=float, default=60.0)
    parser.add_argument("--svg", type=Path, help="draw memory and latency into this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memoryhub-day-") as name, running_model(delay_seconds=0.3) as model:
        folder, home = Path(name), Path(name) / "home"
        environment = {"MEMORYHUB_LLM_MODEL": "player", "MEMORYHUB_LLM_BASE_URL": model}
        tokens, agents = prepare(folder, home)
        with Hub(home, worker=True, environment=environment) as hub:
            day = Day(folder, hub, given.minutes * 60)
            live(day, tokens, agents)
            wait_until_synced(day, agents)
        day.note(*faults_of(home, day.said, day.facts, is_whole=True), *faults_of_files(home, day, agents))
    print(day.figures.table())
    print(
        f"{sum(map(len, day.said.values())):,} entries, {sum(map(len, day.facts.values()))} facts of people,", end=" "
    )
    print(f"{sum(map(len, day.written.values()))} of agents; {dict(day.counts)}")
    if given.svg:
        given.svg.write_text(day.figures.picture())
    print(f"{len(day.faults)} faults" if day.faults else "all checks passed")
    sys.exit(bool(day.faults))


if __name__ == "__main__":
    main()
