"""Write the demo's AgTerm agent, Desk, as session exports (formats.md section 5)."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from memoryhub.demo.script import Script, Turn, put, read_scripts, tool_use
from memoryhub.demo.work import routine
from memoryhub.lib.tokens import count_tokens

KINDS = {"U": ("message", "user"), "A": ("message", "assistant"), "T": ("tool_call", "assistant")}
KINDS |= {"R": ("tool_result", "system"), "C": ("context", "system")}
Row = dict[str, Any]


def write(folder: Path, today: date, offset: int) -> None:
    """Write one export for each session; one of them refers to a missing summary."""
    until = today + timedelta(days=offset)
    for whole in [*read_scripts("desk.txt", today), *desk_routine(today)]:
        script = whole.until(until)
        if not script.turns:
            continue
        value = _export(script)
        if script.key == "desk-restore-drill":
            value["entries"][0]["summaryId"] = "sum-lost"
        put(folder / f"{script.key}.json", json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def desk_routine(today: date) -> list[Script]:
    return routine("desk-work-", "", sessions=18, exchanges=8, today=today, seed=3)


def _export(script: Script) -> Row:
    entries: list[Row] = []
    summaries: list[Row] = []
    for turn in script.turns:
        if turn.mark == "S":
            summaries.append(_summary(script.key, entries, turn))
        else:
            entries.append(_entry(script.key, len(entries), turn))
    return {
        "sessionId": script.key,
        "entries": entries,
        "summaries": summaries,
        "totalTokens": sum(entry["tokenCount"] for entry in entries),
    }


def _entry(key: str, number: int, turn: Turn) -> Row:
    kind, role = KINDS[turn.mark]
    row: Row = {"id": f"{key}-{number:03}", "type": kind, "role": role, "content": turn.text}
    if turn.mark == "T":
        use = tool_use(turn.text)
        row |= {"content": f"{use.name}({use.arguments})", "metadata": {"tool": use.name}}
    elif turn.mark == "C":
        name, _, text = turn.text.partition("\n")
        row |= {"content": text, "metadata": {"source": name}}
    elif turn.mark == "U":
        row |= {"metadata": {"author": "Tomasz"}}
    return row | {"timestamp": _time(turn.at), "tokenCount": count_tokens(row["content"]), "compressed": False}


def _summary(key: str, entries: list[Row], turn: Turn) -> Row:
    """Return a summary of all entries that have none yet, and mark them as compressed."""
    identity = f"{key}-sum"
    covered = [entry for entry in entries if not entry["compressed"]]
    for entry in covered:
        entry |= {"compressed": True, "summaryId": identity}
    original, tokens = sum(entry["tokenCount"] for entry in covered), count_tokens(turn.text)
    return {
        "id": identity,
        "content": turn.text,
        "originalEntryIds": [entry["id"] for entry in covered],
        "tokenCount": tokens,
        "originalTokenCount": original,
        "compressionRatio": round(original / tokens, 2),
        "createdAt": _time(turn.at + timedelta(hours=1)),
        "timeRange": {"start": covered[0]["timestamp"], "end": covered[-1]["timestamp"]},
    }


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.000Z"
