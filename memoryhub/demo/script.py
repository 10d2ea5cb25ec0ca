"""Parse the demo's scripts, which describe sessions in a short notation.

``= key | title | directive`` starts a session, and ``@ -3 09:30`` sets the day and time. Each other line is a turn:
U user, A assistant, T a tool call with JSON arguments (and optionally ``| text``), R its result, C a file as context,
S a summary of everything before it, F a fact that a model would learn (``section | fact``). A line that starts with
two spaces continues the previous one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

STORY = Path(__file__).parent / "story"
TURN_SECONDS = 40


@dataclass
class Turn:
    mark: str
    text: str
    at: datetime


@dataclass
class Script:
    """A session. ``facts``: what a model would learn from it, with its day and section (only routine sessions)."""

    key: str
    title: str
    directive: str
    turns: list[Turn] = field(default_factory=list)
    facts: list[tuple[date, str, str]] = field(default_factory=list)

    def until(self, day: date) -> Script:
        """Return the session as it was at the end of a day."""
        turns = [turn for turn in self.turns if turn.at.date() <= day]
        facts = [fact for fact in self.facts if fact[0] <= day]
        return Script(self.key, self.title, self.directive, turns, facts)


@dataclass(frozen=True)
class ToolUse:
    """The tool call of a T line: name, JSON arguments, and the assistant's text."""

    name: str
    arguments: str
    text: str


def moment(today: date, offset: int, clock: str) -> datetime:
    """Return the time ``clock`` on the day ``offset`` days from today."""
    return datetime.combine(today + timedelta(days=offset), time.fromisoformat(clock), UTC)


def read_scripts(name: str, today: date) -> list[Script]:
    """Parse a script file into sessions."""
    scripts: list[Script] = []
    at = moment(today, 0, "08:00")
    for mark, text in parse_lines((STORY / name).read_text()):
        if mark == "=":
            key, title, directive = [*(part.strip() for part in text.split("|")), "", ""][:3]
            scripts.append(Script(key, title, directive))
        elif mark == "@":
            offset, clock = text.split()
            at = moment(today, int(offset), clock)
        else:
            scripts[-1].turns.append(Turn(mark, text, at))
            at += timedelta(seconds=TURN_SECONDS)
    return scripts


def parse_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the mark and the text of each line, with its continuation lines."""
    current: list[str] = []
    for line in [*text.split("\n"), "= end"]:
        if re.match(r"[=@UATRCSF] ", line):
            if current:
                yield current[0][0], "\n".join([current[0][2:], *current[1:]]).rstrip()
            current = [line]
        else:
            current.append(line[2:])


def tool_use(text: str) -> ToolUse:
    name, _, rest = text.partition(" ")
    end = rest.rindex("}") + 1
    return ToolUse(name, rest[:end], rest[end:].lstrip(" |"))


def blocks(name: str) -> dict[str, list[str]]:
    """Return the lines of each section of a file; ``== title`` starts a section."""
    found: dict[str, list[str]] = {}
    for line in (STORY / name).read_text().rstrip("\n").split("\n"):
        if line.startswith("== "):
            found[line[3:]] = []
        else:
            list(found.values())[-1].append(line)
    return found


def pair(line: str) -> tuple[str, str]:
    """Split ``left | right``."""
    left, _, right = line.partition("|")
    return left.strip(), right.strip()


def as_of(lines: Iterable[str], offset: int) -> str:
    """Return a document as it was ``offset`` days from today.

    ``@-28 text`` is a line that exists from that day on, ``@-41:-16 text`` until before the second one.
    """
    found = []
    for line in lines:
        match = re.match(r"@(-?\d+)(?::(-?\d+))? ?(.*)", line)
        if match is None:
            found.append(line)
        elif int(match[1]) <= offset < int(match[2] or 1):
            found.append(match[3])
    return "\n".join(found).strip() + "\n"


def edited(text: str, edits: Iterable[str]) -> str:
    """Return a document with edits.

    ``- old => new`` replaces a line, ``- old =>`` removes it, ``+ Section | new`` appends one to a section.
    """
    for edit in edits:
        if edit.startswith("+ "):
            section, line = pair(edit[2:])
            text = _added(text, section, line)
        elif edit:
            old, _, new = edit.removeprefix("- ").partition("=>")
            text = text.replace(f"{old.strip()}\n", f"{new.strip()}\n" if new.strip() else "")
    return text


def _added(text: str, section: str, line: str) -> str:
    """Append a line to a section, which is created at the end if it doesn't exist."""
    head, found, rest = f"\n{text}".partition(f"\n# {section}\n")
    if not found:
        return f"{text.rstrip()}\n\n# {section}\n\n{line}\n".lstrip()
    body, next_heading, others = rest.partition("\n# ")
    grown = f"{head}{found}\n{body.strip()}\n{line}\n"
    return (f"{grown}\n# {others}" if next_heading else grown).removeprefix("\n")


def dated(text: str, today: date) -> str:
    """Replace ``{-30}`` with the date 30 days ago."""
    return re.sub(r"\{(-?\d+)\}", lambda found: str(today + timedelta(days=int(found.group(1)))), text)


def put(path: Path, text: str) -> None:
    """Write a file, unless it has this text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
