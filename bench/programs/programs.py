"""Check that a hub reads everything that real agents write, while they run with a scripted model on loopback.

    python bench/programs/programs.py [--tools FOLDER] [PROGRAM...]

It needs Node.js; npm and pip install what FOLDER lacks.

Each program holds a conversation with a command, resumes it, forks it and compacts it, while the hub follows its
home. What a program only does in a terminal is typed with tmux, if that is installed. Each prompt, answer, command
and result must then be in the hub once. The exit status is 1 if something is missing or there twice; what couldn't be
run is listed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
PLACE = Path(tempfile.mkdtemp(prefix="memoryhub-programs-"))
os.environ["MEMORYHUB_HOME"] = str(PLACE / "hub")
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db.models import Q  # noqa: E402
from django.utils import timezone  # noqa: E402

from bench.programs.programs_list import PROGRAMS, Program  # noqa: E402
from bench.programs.programs_model import SUMMARY, running_model  # noqa: E402
from memoryhub.sync.importing import import_workspace  # noqa: E402
from memoryhub.sync.projects import open_home  # noqa: E402
from memoryhub.sync.watching import follow_workspaces, followed_workspaces  # noqa: E402
from sessions_app.models import Entry, Session, Summary, Workspace  # noqa: E402
from sessions_app.services.audit import Actor, By  # noqa: E402
from sessions_app.services.syncing import switch_sync  # noqa: E402

PERSON = Actor("person", "bench")
SECONDS_PER_RUN = 600
COMPACTED = (SUMMARY, "Chat history compressed")  # what terminals show then
SETTLED_SECONDS = 8  # for which a terminal must not change
PATIENCE_SECONDS = 20.0


@dataclass
class Drill:
    """One program's run. ``said``: names of the turns; ``commands``: of those with a command."""

    program: Program
    tools: Path
    url: str
    said: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    has_compacted: bool = False

    @property
    def user(self) -> Path:
        return PLACE / self.program.name

    @property
    def home(self) -> Path:
        return self.user / self.program.home

    @property
    def work(self) -> Path:
        work = self.user / "atlas"
        work.mkdir(parents=True, exist_ok=True)
        return work

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": str(self.user), "PATH": path_of(self.program, self.tools)} | self.program.env(self.url)

    def run(self, arguments: list[str]) -> str:
        """Run the program in its project; return "" or why it failed."""
        try:
            done = subprocess.run(
                [str(self.program.binary(self.tools)), *arguments],
                cwd=self.work,
                env=self.env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS_PER_RUN,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return type(error).__name__
        tail = (done.stderr or done.stdout).strip().splitlines()[-1:] or [""]
        return "" if done.returncode == 0 else f"exit status {done.returncode}: {tail[0][:160]}"

    def speak(self, name: str, arguments: Callable[[str], list[str]], *, command: bool = False) -> bool:
        failure = self.run(arguments(f"turn-{name}{' with a command' if command else ''}"))
        if failure:
            self.notes.append(f"couldn't be run: {name} ({failure})")
            return False
        self.said.append(name)
        self.commands += [name] if command else []
        return True

    def hold_conversation(self, follow: Callable[[Path], None]) -> None:
        program = self.program
        program.config(self.home, self.url)
        if not self.speak("first", program.turn, command=True):
            return
        follow(self.home)
        self.measured("resumed", lambda: self.speak("resumed", program.resume, command=True))
        if program.fork:
            origin, fork = program.latest(self.home), program.fork
            self.speak("forked", lambda prompt: fork(origin, prompt))
        else:
            self.notes.append("couldn't be run: fork")
        if failure := self.compact():
            self.notes.append(f"couldn't be run: compact ({failure})")
        else:
            self.has_compacted = True
        self.speak("last", program.resume)

    def compact(self) -> str:
        """Compact the newest session; return "" or why that failed."""
        program = self.program
        if program.compact:
            return self.run(program.compact(program.latest(self.home)))
        if not program.terminal:
            return "no way without a person"
        if not shutil.which("tmux"):
            return "tmux is missing"
        arguments, typed = program.terminal
        command = [str(program.binary(self.tools)), *arguments]
        shown = type_in_terminal(command, typed, self.work, self.env)
        return "" if any(text in shown for text in COMPACTED) else "no summary was shown"

    def measured(self, name: str, speak: Callable[[], bool]) -> None:
        if speak():
            start = time.monotonic()
            while time.monotonic() - start < PATIENCE_SECONDS and not self.answers(name).exists():
                time.sleep(0.05)
            self.notes.append(f"an answer was in the hub {time.monotonic() - start:.1f} s after the program ended")

    def entries(self):
        """Return the program's entries, without earlier versions of messages that were read half written."""
        return Entry.objects.filter(workspace__path=str(self.home), is_injected=False, is_rewound=False)

    def answers(self, name: str):
        return self.entries().filter(role="assistant", content__contains=f"reply-{name}")

    def counts(self) -> dict[str, int]:
        found = {}
        for name in self.said:
            prompts = self.entries().filter(role="user", kind="message", content__contains=f"turn-{name}")
            found |= {f"turn-{name}": prompts.count(), f"reply-{name}": self.answers(name).count()}
        for name in self.commands:
            calls = self.entries().filter(kind="tool_call", tool_calls__contains=f"result-{name}")
            results = self.entries().filter(kind="tool_result", content__contains=f"result-{name}")
            found |= {f"call {name}": calls.count(), f"result {name}": results.count()}
        if self.has_compacted:
            summaries = Summary.objects.filter(workspace__path=str(self.home)).filter(Q(content__contains=SUMMARY))
            found["summary"] = summaries.count()
        return found

    def check(self) -> None:
        """Wait until the hub has everything once; record what it hasn't."""
        start = time.monotonic()
        while time.monotonic() - start < PATIENCE_SECONDS and set(self.counts().values()) != {1}:
            time.sleep(0.2)
        self.faults = [f"{name} is there {count} times" for name, count in self.counts().items() if count != 1]
        before = self.entries().count()
        import_all(self.home)
        if self.entries().count() != before:
            self.faults.append("importing again added entries")


def type_in_terminal(command: list[str], text: str, work: Path, env: dict[str, str]) -> str:
    """Run a program in a terminal, type a line when it is ready, and return what it shows then."""
    tmux = ["tmux", "-S", str(PLACE / "tmux")]
    settings = [f"{name}={value}" for name, value in (env | {"TERM": "screen-256color"}).items()]
    start = [*tmux, "new-session", "-d", "-x", "180", "-y", "50", "-c", str(work), "env", "-i", *settings, *command]
    try:
        subprocess.run(start, check=True)
        settled_screen(tmux)
        for keys in (["-l", text], ["Enter"]):
            subprocess.run([*tmux, "send-keys", *keys], check=True)
            time.sleep(1)
        return settled_screen(tmux)
    except subprocess.SubprocessError as error:
        return type(error).__name__
    finally:
        subprocess.run([*tmux, "kill-server"], check=False, capture_output=True)


def settled_screen(tmux: list[str]) -> str:
    """Return what a terminal shows once that stays the same."""
    end, shown, since = time.monotonic() + SECONDS_PER_RUN / 2, "", time.monotonic()
    while time.monotonic() < end and (not shown.strip() or time.monotonic() - since < SETTLED_SECONDS):
        time.sleep(0.5)
        done = subprocess.run([*tmux, "capture-pane", "-p", "-S", "-200"], capture_output=True, text=True, check=True)
        if done.stdout != shown:
            shown, since = done.stdout, time.monotonic()
    return shown


def import_all(home: Path) -> list[Workspace]:
    by = By(PERSON, timezone.now())
    found = open_home(home)
    return [import_workspace(home, by=by, project=name).workspace for name in (found.names() if found else [""])]


def follow(home: Path) -> None:
    for workspace in import_all(home):
        switch_sync(workspace, follow=True, by=By(PERSON, timezone.now()))


def path_of(program: Program, tools: Path) -> str:
    """Return the PATH of a program, with its own Node.js first."""
    own = [str(tools / "node_modules" / "node" / "bin")] if program.node else []
    return os.pathsep.join([*own, os.environ["PATH"]])


def installed(program: Program, tools: Path) -> str:
    """Install a program with npm or pip if it isn't there; return "" or why that failed."""
    if program.binary(tools).exists():
        return ""
    npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tools)]
    steps = [[*npm, package] for package in (program.node, program.package) if package]
    if program.is_python:
        place = tools / program.name
        steps = [[sys.executable, "-m", "venv", str(place)], [str(place / "bin" / "pip"), "install", program.package]]
    env = os.environ | {"PATH": path_of(program, tools)}  # npm chooses a version for the Node.js that runs it
    for step in steps:
        try:
            done = subprocess.run(step, env=env, capture_output=True, text=True, timeout=900)
        except (OSError, subprocess.TimeoutExpired) as error:
            return type(error).__name__
        if done.returncode:
            return (done.stderr.strip().splitlines() or [f"{step[0]} failed"])[0][:160]
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=Path, default=PLACE / "tools", help="where npm installed the programs")
    parser.add_argument("programs", nargs="*", help=", ".join(one.name for one in PROGRAMS))
    options = parser.parse_args()
    call_command("migrate", verbosity=0)
    stopping, failed = threading.Event(), False
    follower = threading.Thread(
        target=follow_workspaces, args=(stopping, followed_workspaces), kwargs={"actor": PERSON}
    )
    follower.start()
    try:
        with running_model() as url:
            for program in PROGRAMS:
                if options.programs and program.name not in options.programs:
                    continue
                if failure := installed(program, options.tools):
                    print(f"{program.name}: couldn't be installed: {failure}")
                    continue
                drill = Drill(program, options.tools, url)
                drill.hold_conversation(follow)
                if drill.said:
                    drill.check()
                report(drill)
                failed = failed or bool(drill.faults)
    finally:
        stopping.set()
        follower.join()
        shutil.rmtree(PLACE, ignore_errors=True)
    return 1 if failed else 0


def report(drill: Drill) -> None:
    sessions = Session.objects.filter(workspace__path=str(drill.home)).count()
    counts = f"{len(drill.said)} turns, {sessions} sessions, {drill.entries().count()} entries"
    print(f"{drill.program.name}: {counts}: {'FAILED' if drill.faults else 'ok' if drill.said else 'not run'}")
    for text in (*drill.faults, *drill.notes):
        print(f"  {text}")


if __name__ == "__main__":
    sys.exit(main())
