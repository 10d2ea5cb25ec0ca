"""Write the demo's Grip agent, Pilot (formats.md section 3)."""

from __future__ import annotations

import hashlib
import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from memoryhub.demo.script import Script, as_of, blocks, dated, moment, pair, put, read_scripts, tool_use
from memoryhub.demo.work import routine
from memoryhub.lib.layouts.file_names import safe_name
from memoryhub.lib.layouts.grip import content_id

KNOWLEDGE = [
    ("user_preference", "Ines prefers bullet points over paragraphs", "user_message", ["ines", "style"], 4),
    ("user_preference", 'never the word "simply" in release notes', "user_message", ["style"], 2),
    ("project_decision", "The observation queue stays in PostgreSQL with SKIP LOCKED", "adr-004", ["queue"], 3),
    ("project_decision", "Blocks are 40 minutes long since 1.8", "release 1.8", ["blocks", "release"], 1),
    ("system_behavior", "Staging is read-only from 02:00 to about 09:00", "observation", ["staging"], 2),
    ("system_behavior", "The dome closes by itself above 85 % humidity", "retro", ["dome"], 1),
    ("error_pattern", "pg_restore fails when role archive_ro is missing; create it first", "drill", ["restore"], 1),
    ("error_pattern", "A close command is ignored when the limit switch has low voltage", "incident", ["dome"], 0),
    ("learned_fact", "ドーム2の電圧監視の閾値は 23 V", "manual", ["dome"], 0),
    ("learned_fact", "Fourteen FITS files have an empty DATE-OBS header", "import", ["archive", "fits"], 0),
    ("project_decision", "Release notes of 1.8 are out on Tuesday at 10:00", "release 1.8", ["release"], 2),
    ("project_decision", "The release notes of 1.8 are out Tuesday at 10:00", "user_message", ["release"], 0),
    ("project_decision", "Release notes of 1.8 were out on Tuesday, 10:00", "user_message", [], 0),
    ("user_preference", "Grete reads reports in German", "user_message", ["grete"], 1),
]


def write(folder: Path, today: date, offset: int) -> None:
    """Write the home folder: sessions (one partly saved), memory, history with an archive, knowledge, cache."""
    workspace = folder / "workspace"
    config = {"agents": {"defaults": {"memory_window": 6, "auto_consolidate": True, "semantic_cache_ttl": 3600}}}
    put(folder / "config.json", json.dumps(config, indent=2))
    scripts = read_scripts("pilot.txt", today)
    if offset > -9:
        for number, script in enumerate(scripts):
            _write_session(workspace / "sessions", script, moment(today, number - 9, "15:10"))
    for whole in routine("telegram:7710", "", sessions=7, exchanges=14, today=today, seed=7):
        if (begun := whole.until(today + timedelta(days=offset))).turns:
            _write_session(workspace / "sessions", begun, begun.turns[-1].at)
    put(
        workspace / "sessions" / "cli_default.tmp",
        '{"key":"cli:default","messages":[{"role":"user","content":"which c',
    )
    memory = workspace / "memory"
    put(memory / "MEMORY.md", dated(as_of(blocks("memory.txt")["pilot MEMORY.md"], offset), today))
    _write_history(memory, scripts, today, offset)
    days = {-100 + 7 * place: row for place, row in enumerate(KNOWLEDGE)}
    entries = [_knowledge(row, moment(today, day, "12:00")) for day, row in days.items() if day <= offset]
    put(
        memory / "knowledge.json", json.dumps({"version": 1, "entries": entries}, ensure_ascii=False, indent=2) + "\n"
    )
    _write_cache(workspace / "state" / "semantic_cache.json", today)


def _write_session(folder: Path, script: Script, at: datetime) -> None:
    facts = script.directive.removeprefix("summary").strip()
    value = {
        "key": script.key,
        "messages": _messages(script),
        "summary": f"[Previous conversation context]\n- {facts}" if facts else None,
        "created_at": (at - timedelta(days=20)).timestamp(),
        "updated_at": at.timestamp(),
    }
    name = safe_name(script.key, "grip")
    put(folder / f"{name}.json", json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _messages(script: Script) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    waiting: list[str] = []
    for index, turn in enumerate(script.turns):
        if turn.mark == "T":
            use, identity = tool_use(turn.text), f"call_{index:02}"
            call = {"id": identity, "function_name": use.name, "arguments": json.loads(use.arguments)}
            message: dict[str, Any] = {"role": "assistant"} | ({"content": use.text} if use.text else {})
            messages.append(message | {"tool_calls": [call]})
            waiting.append(identity)
        elif turn.mark == "R":
            messages.append({"role": "tool", "content": turn.text, "tool_call_id": waiting.pop(0)})
        else:
            messages.append({"role": "user" if turn.mark == "U" else "assistant", "content": turn.text})
    return messages


def _write_history(folder: Path, scripts: list[Script], today: date, offset: int) -> None:
    """Write the history log as Grip does, with its older half in an archive that ends in the middle of an entry."""
    lines: list[str] = []
    for day in range(-102, min(-2, offset), 4):
        for number, script in enumerate(scripts):
            turns = [turn for turn in script.turns if turn.mark in "UA"]
            turn, answer = turns[(day + 102) // 4 % len(turns) & ~1], turns[((day + 102) // 4 % len(turns) & ~1) + 1]
            stamp = f"[{moment(today, day, f'{9 + number:02}:15'):%Y-%m-%d %H:%M:%S} UTC]"
            lines += f"{stamp} User: {turn.text[:200]}".split("\n") + f"{stamp} Assistant: {answer.text[:200]}".split(
                "\n"
            )
    if offset < -2:
        put(folder / "HISTORY.md", "\n".join(["# Conversation History Log", "", *lines]) + "\n")
        return
    middle = next(i for i in range(len(lines) // 2, len(lines)) if not lines[i].startswith("["))
    head = ["# Conversation History Log", "", *lines[:middle]]
    put(folder / f"HISTORY.archive.{today - timedelta(days=12):%Y%m%d}030000.md", "\n".join(head) + "\n")
    put(folder / "HISTORY.md", "\n".join(lines[middle:]) + "\n")


def _knowledge(row: tuple[str, str, str, list[str], int], at: datetime) -> dict[str, Any]:
    category, content, source, tags, uses = row
    return {
        "id": content_id(category, content),
        "category": category,
        "content": content,
        "source": source,
        "tags": tags,
        "created_at": at.timestamp(),
        "accessed_at": (at + timedelta(days=uses)).timestamp(),
        "access_count": uses,
    }


def _write_cache(path: Path, today: date) -> None:
    model = "openrouter/anthropic/claude-sonnet-4"
    rows = {}
    for place, line in enumerate(blocks("forge.txt")["cache"]):
        question, answer = pair(line)
        key = hashlib.sha256(f"{question.strip().lower()}||{model}".encode()).hexdigest()
        at = moment(today, place - 9, "10:30").timestamp()
        rows[key] = {
            "response": answer,
            "model": model,
            "created_at": at,
            "accessed_at": at + 60,
            "message_preview": question,
        }
    put(path, json.dumps(rows, ensure_ascii=False))
