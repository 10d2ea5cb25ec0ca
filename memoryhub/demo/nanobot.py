"""Write the demo's nanobot 0.3 agent, Atlas (formats.md section 2)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from memoryhub.demo.script import Script, Turn, as_of, blocks, dated, moment, pair, put, read_scripts, tool_use
from memoryhub.demo.work import routine

WORKSPACE_ID = "7d3f0c5a9be24c1d8f60a2b4c6d8e0f1"
DIGEST_DAYS = 84
Record = dict[str, Any]


def write(folder: Path, today: date, offset: int) -> None:
    """Write the home folder: configuration, sessions with a damaged line and a checkpoint, memory, history."""
    workspace = folder / "workspace"
    put(folder / "config.json", json.dumps({"agents": {"defaults": {"workspace": "~/.nanobot/workspace"}}}, indent=2))
    put(workspace / ".nanobot" / "workspace-id", f"{WORKSPACE_ID}\n")
    memory = blocks("memory.txt")
    for name, path in (("MEMORY.md", "memory/MEMORY.md"), ("SOUL.md", "SOUL.md"), ("USER.md", "USER.md")):
        put(workspace / path, dated(as_of(memory[f"atlas {name}"], offset), today))
    _write_history(workspace / "memory", memory["atlas history"], today, offset)
    sessions = folder / "sessions" / WORKSPACE_ID
    put(sessions / ".workspace", "/home/ines/.nanobot/workspace\n")
    for script in [*read_scripts("atlas.txt", today), _digests(today), *atlas_routine(today)]:
        if (begun := script.until(today + timedelta(days=offset))).turns:
            _write_session(sessions, begun)


def atlas_routine(today: date) -> list[Script]:
    return routine("slack:C04MERIDIAN:176", "{topic}", sessions=16, exchanges=10, today=today, seed=0)


def _write_history(folder: Path, lines: list[str], today: date, until: int) -> None:
    rows = []
    for cursor, line in enumerate(filter(None, lines), 1):
        stamp, _, rest = line[1:].partition("} ")
        offset, clock = stamp.split()
        if int(offset) > until:
            continue
        text, key = pair(rest)
        row: Record = {
            "cursor": cursor,
            "timestamp": f"{moment(today, int(offset), clock):%Y-%m-%d %H:%M}",
            "content": text,
        }
        rows.append(row | ({"session_key": key} if key else {}))
    put(folder / "history.jsonl", _jsonl(rows))
    put(folder / ".cursor", f"{len(rows)}\n")


def _write_session(folder: Path, script: Script) -> None:
    messages = list(_messages(script))
    pointer = min(int(script.directive.removeprefix("pointer").strip() or 0), len(messages))
    inner: Record = {"title": script.title} if script.title else {}
    if pointer > 10:
        inner["_last_summary"] = {
            "text": "Ines leads Meridian and wants short answers. The team, the queue and the dome rule are known.",
            "last_active": messages[-1]["timestamp"],
        }
    metadata = {
        "_type": "metadata",
        "key": script.key,
        "created_at": messages[0]["timestamp"],
        "updated_at": messages[-1]["timestamp"],
        "metadata": inner,
        "last_archived": pointer,
        "last_consolidated": pointer,
    }
    stem = base64.urlsafe_b64encode(script.key.encode()).decode().rstrip("=")
    text = _jsonl([metadata, *messages])
    if script.key.startswith("matrix"):
        text += '{"role": "user", "content": "and tomor\n'  # a full disk cut off the line
    put(folder / f"{stem}.jsonl", text)
    if script.key == "cli:direct" and script.turns[-1].mark == "T":
        checkpoint = {
            "version": 1,
            "session_key": script.key,
            "base_message_count": len(messages),
            "checkpoint": {"phase": "tools_running", "iteration": 0},
        }
        put(folder / f"{stem}.checkpoint.json", json.dumps(checkpoint))


def _messages(script: Script) -> Iterator[Record]:
    """Convert a script to messages; adjacent T lines become the tool calls of one message."""
    group: list[Turn] = []
    waiting: list[tuple[str, str]] = []
    for index, turn in enumerate(script.turns):
        follows = script.turns[index + 1].mark if index + 1 < len(script.turns) else ""
        stamp = f"{turn.at:%Y-%m-%dT%H:%M:%S}.{index:06}"
        if turn.mark == "T":
            group.append(turn)
            if follows != "T":
                calls = [_call(script.key, index - len(group) + 1 + i, item) for i, item in enumerate(group)]
                waiting = [(call["id"], call["function"]["name"]) for call in calls]
                text = tool_use(group[0].text).text
                yield {"role": "assistant", "content": text, "tool_calls": calls, "timestamp": stamp}
                group = []
        elif turn.mark == "R":
            identity, name = waiting.pop(0)
            yield {"role": "tool", "tool_call_id": identity, "name": name, "content": turn.text, "timestamp": stamp}
        elif turn.mark == "U":
            extra = {"_command": True} if turn.text.startswith("/") else {}
            yield {"role": "user", "content": turn.text, "timestamp": stamp, **extra}
        else:
            yield {"role": "assistant", "content": turn.text, "timestamp": stamp, "latency_ms": 400 + 37 * index}


def _call(key: str, index: int, turn: Turn) -> Record:
    use = tool_use(turn.text)
    identity = f"toolu_{sum(map(ord, key)) % 900 + 100}_{index:03}"
    return {"id": identity, "type": "function", "function": {"name": use.name, "arguments": use.arguments}}


def _digests(today: date) -> Script:
    """Return a session with a digest for every working day, with varying figures and one incident."""
    script = Script("cron:morning-digest", "Morning digest", f"pointer {4 * 24}")
    for offset in range(-7 * DIGEST_DAYS // 5, 0):
        at = moment(today, offset, "06:30")
        if at.weekday() > 4:
            continue
        wave = abs(offset * 7919) % 23
        blocks_done, p95 = 61 + wave, (405 + wave) if offset < -9 else 176 + wave // 3
        humidity = 91 if offset == -29 else 48 + wave
        rows = f"blocks_done={blocks_done}\np95_ms={p95}\nhumidity_max={humidity}\narchive_lag_min={3 + wave % 4}"
        warning = " ⚠️ Dome 2 stayed open for 17 minutes." if humidity > 85 else ""
        answer = f"{blocks_done} blocks observed, scheduler p95 {p95} ms, humidity up to {humidity} %.{warning}"
        for step, (mark, text) in enumerate(
            [
                ("U", "Write the morning digest"),
                ("T", 'exec {"command": "meridianctl night --last"}'),
                ("R", rows),
                ("A", answer),
            ]
        ):
            script.turns.append(Turn(mark, text, at + timedelta(seconds=step)))
    return script


def _jsonl(rows: list[Record]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
