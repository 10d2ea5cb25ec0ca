"""Check that a hub reads everything that real coding agents write, while they run with a scripted model on loopback.

    python bench/programs.py [--tools FOLDER] [PROGRAM...]      (needs Node.js; npm installs what FOLDER lacks)

Each program holds a conversation with a command, resumes it, forks it and compacts it, as far as it can without a
terminal, while the hub follows its home. Each prompt, answer, command and result must then be in the hub once. The
exit status is 1 if something is missing or there twice; what couldn't be run is listed.
"""

from __future__ import annotations

import argparse
import json
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

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PLACE = Path(tempfile.mkdtemp(prefix="memoryhub-programs-"))
os.environ["MEMORYHUB_HOME"] = str(PLACE / "hub")
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db.models import Q  # noqa: E402
from django.utils import timezone  # noqa: E402

from bench.programs_model import SUMMARY, running_model  # noqa: E402
from memoryhub.sync.importing import import_workspace  # noqa: E402
from memoryhub.sync.projects import open_home  # noqa: E402
from memoryhub.sync.watching import follow_workspaces, followed_workspaces  # noqa: E402
from sessions_app.models import Entry, Session, Summary, Workspace  # noqa: E402
from sessions_app.services.audit import Actor, By  # noqa: E402
from sessions_app.services.syncing import switch_sync  # noqa: E402

PERSON = Actor("person", "bench")
SECONDS_PER_RUN = 240
PATIENCE_SECONDS = 20.0


@dataclass
class Program:
    """``home``: below the user's home. The functions return arguments; None: it can't do that without a terminal.

    ``latest``: returns the id of the newest session in the home.
    """

    name: str
    package: str
    command: str
    home: str
    env: Callable[[str], dict[str, str]]
    turn: Callable[[str], list[str]]
    resume: Callable[[str], list[str]]
    latest: Callable[[Path], str] = lambda _home: ""
    fork: Callable[[str, str], list[str]] | None = None
    compact: Callable[[str], list[str]] | None = None
    config: Callable[[Path, str], None] = lambda _home, _url: None


def newest_file(pattern: str, length: int = 36) -> Callable[[Path], str]:
    def find(home: Path) -> str:
        return max(home.glob(pattern), key=lambda path: path.stat().st_mtime_ns).stem[-length:]

    return find


def configure_codex(home: Path, url: str) -> None:
    provider = f'[model_providers.local]\nname = "local"\nbase_url = "{url}/v1"\nenv_key = "MODEL_KEY"\n'
    home.mkdir(parents=True)
    (home / "config.toml").write_text(
        f'model = "scripted"\nmodel_provider = "local"\n{provider}wire_api = "responses"\n'
    )


def configure_opencode(home: Path, url: str) -> None:
    options = {"options": {"baseURL": f"{url}/v1", "apiKey": "none"}, "models": {"scripted": {"name": "scripted"}}}
    settings = {"provider": {"anthropic": options}, "model": "anthropic/scripted", "autoupdate": False}
    settings |= {"small_model": "anthropic/scripted", "permission": "allow"}
    folder = home.parents[2] / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(settings))


def configure_gemini(home: Path, _url: str) -> None:
    home.mkdir(parents=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (home / "settings.json").write_text(json.dumps(settings))


def opencode_session(home: Path) -> str:
    import sqlite3

    with sqlite3.connect(f"file:{home / 'opencode.db'}?mode=ro", uri=True) as store:
        return str(store.execute("SELECT id FROM session ORDER BY time_updated DESC").fetchone()[0])


CLAUDE = ["-p", "--allowedTools", "Bash", "--dangerously-skip-permissions"]
CODEX = ["exec", "--skip-git-repo-check", "-s", "danger-full-access"]
PROGRAMS = [
    Program(
        "claude-code",
        "@anthropic-ai/claude-code",
        "claude",
        ".claude",
        env=lambda url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        },
        turn=lambda prompt: [*CLAUDE, prompt],
        resume=lambda prompt: [*CLAUDE, "--continue", prompt],
        latest=newest_file("projects/*/*.jsonl"),
        fork=lambda name, prompt: [*CLAUDE, "--resume", name, "--fork-session", prompt],
        compact=lambda name: ["-p", "--resume", name, "/compact"],
    ),
    Program(
        "codex",
        "@openai/codex",
        "codex",
        ".codex",
        env=lambda _url: {"MODEL_KEY": "none"},
        turn=lambda prompt: [*CODEX, prompt],
        resume=lambda prompt: [*CODEX, "resume", "--last", prompt],
        latest=newest_file("sessions/*/*/*/rollout-*.jsonl"),
        fork=lambda name, prompt: [*CODEX, "fork", name, prompt],
        compact=lambda _name: [*CODEX, "-c", "model_auto_compact_token_limit=50", "resume", "--last", "turn-compact"],
        config=configure_codex,
    ),
    Program(
        "opencode",
        "opencode-ai",
        "opencode",
        ".local/share/opencode",
        env=lambda _url: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        turn=lambda prompt: ["run", prompt],
        resume=lambda prompt: ["run", "--continue", prompt],
        latest=opencode_session,
        fork=lambda name, prompt: ["run", "--session", name, "--fork", prompt],
        config=configure_opencode,
    ),
    Program(
        "gemini-cli",
        "@google/gemini-cli",
        "gemini",
        ".gemini",
        env=lambda url: {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        turn=lambda prompt: ["--yolo", "-p", prompt],
        resume=lambda prompt: ["--yolo", "--resume", "latest", "-p", prompt],
        config=configure_gemini,
    ),
    Program(
        "openclaw",
        "openclaw",
        "openclaw",
        ".openclaw",
        env=lambda _url: {},
        turn=lambda prompt: ["agent", "--local", "--message", prompt],
        resume=lambda prompt: ["agent", "--local", "--message", prompt],
    ),
]


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

    def run(self, arguments: list[str]) -> str:
        """Run the program in its project; return "" or why it failed."""
        work = self.user / "atlas"
        work.mkdir(parents=True, exist_ok=True)
        binary = self.tools / "node_modules" / ".bin" / self.program.command
        env = {"HOME": str(self.user), "PATH": os.environ["PATH"]} | self.program.env(self.url)
        try:
            done = subprocess.run(
                [str(binary), *arguments],
                cwd=work,
                env=env,
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
        if program.compact and not (failure := self.run(program.compact(program.latest(self.home)))):
            self.has_compacted = True
        else:
            self.notes.append("couldn't be run: compact" + (f" ({failure})" if program.compact else ""))
        self.speak("last", program.resume)

    def measured(self, name: str, speak: Callable[[], bool]) -> None:
        if speak():
            start = time.monotonic()
            while time.monotonic() - start < PATIENCE_SECONDS and not self.answers(name).exists():
                time.sleep(0.05)
            self.notes.append(f"an answer was in the hub {time.monotonic() - start:.1f} s after the program ended")

    def entries(self):
        return Entry.objects.filter(workspace__path=str(self.home), is_injected=False)

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


def import_all(home: Path) -> list[Workspace]:
    by = By(PERSON, timezone.now())
    found = open_home(home)
    return [import_workspace(home, by=by, project=name).workspace for name in (found.names() if found else [""])]


def follow(home: Path) -> None:
    for workspace in import_all(home):
        switch_sync(workspace, follow=True, by=By(PERSON, timezone.now()))


def installed(program: Program, tools: Path) -> str:
    """Install a program with npm if it isn't there; return "" or why that failed."""
    if (tools / "node_modules" / ".bin" / program.command).exists():
        return ""
    arguments = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tools), program.package]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=900)
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["npm failed"])[0][:160]


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
