"""Write the demo's grid agent, Forge (formats.md section 4)."""

from __future__ import annotations

import json
import math
import uuid
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from memoryhub.demo.script import Script, blocks, moment, pair, put, tool_use
from memoryhub.demo.work import routine
from memoryhub.lib.vectors import cosine, unpack
from memoryhub.lib.vectors import pack as pack_floats

NEAR = 0.7
KINDS = {"findings": "finding", "insights": "insight", "lessons": "lesson"}


def write(folder: Path, today: date, offset: int) -> None:
    """Write the storage folder: key-values, graph, sessions, and an export of the observations with one empty row."""
    story = blocks("forge.txt")
    pairs = dict(pair(line) for line in story["keys"])
    values = {key: value.replace("\\n", "\n") for key, value in sorted(pairs.items())}
    text = json.dumps(values, ensure_ascii=False, indent=2)
    put(folder / "kv.json", text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
    put(folder / "semantic_graph.json", json.dumps(_graph(story["topics"], today), ensure_ascii=False, indent=2))
    rows: list[dict[str, Any]] = []
    for heading, category in KINDS.items():
        for line in story[heading]:
            source, content = pair(line)
            at = moment(today, -100, "04:00") + timedelta(hours=80 * len(rows))
            identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{source} {content}"))
            rows.append(
                {
                    "category": category,
                    "content": content,
                    "created_at": f"{at:%Y-%m-%dT%H:%M:%SZ}",
                    "id": identity,
                    "source": source,
                }
            )
    until = moment(today, offset, "23:59")
    rows = [row for row in rows if row["created_at"] <= f"{until:%Y-%m-%dT%H:%M:%SZ}"]
    rows.append({"category": "finding", "id": "0", "source": "GOAL:interrupted"})
    put(folder / "observations-export.json", json.dumps(rows, ensure_ascii=False, indent=2) + "\n")
    put(folder / "observations.bleve" / "index_meta.json", '{"storage":"boltdb","index_type":"scorch"}')

    for whole in routine("run-", "{topic}", sessions=12, exchanges=8, today=today, seed=11):
        if (begun := whole.until(today + timedelta(days=offset))).turns:
            put(folder / "sessions" / f"{begun.key}.jsonl", _session(begun))


def _session(script: Script) -> str:
    """Return a session file: a header and an event for each turn."""
    header = {"_type": "header", "id": script.key, "workflow_name": script.title}
    lines: list[dict[str, Any]] = [header | {"created_at": f"{script.turns[0].at:%Y-%m-%dT%H:%M:%SZ}"}]
    for index, turn in enumerate(script.turns):
        event: dict[str, Any] = {"_type": "event", "timestamp": f"{turn.at:%Y-%m-%dT%H:%M:%SZ}"}
        if turn.mark == "T":
            use = tool_use(turn.text)
            event |= {"type": "tool_call", "tool": use.name, "args": json.loads(use.arguments)}
            event |= {"content": use.text, "corr_id": f"c{index}"}
        elif turn.mark == "R":
            event |= {"type": "tool_result", "content": turn.text, "corr_id": f"c{index - 1}"}
        else:
            event |= {"type": "user" if turn.mark == "U" else "assistant", "content": turn.text}
        lines.append(event)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _graph(topics: list[str], today: date) -> dict[str, Any]:
    """Return a graph in which words of the same topic have similar embeddings."""
    members = [pair(line)[1].split() for line in topics]
    words = sorted({word for topic in members for word in topic})
    vectors = {word: _embedding(word, members) for word in words}
    terms = {}
    for word in words:
        near = [(cosine(vectors[word], vectors[other]), other) for other in words if other != word]
        related = [other for similarity, other in sorted(near, reverse=True) if similarity >= NEAR]
        terms[word] = {"embedding": vectors[word], "related": related[:8]}
    meta = {
        "provider": "openai",
        "model": "text-embedding-3-small",
        "base_url": "https://api.openai.com/v1",
        "dimensions": 8,
        "built_at": f"{moment(today, -1, '04:00'):%Y-%m-%dT%H:%M:%SZ}",
    }
    return {"meta": meta, "terms": terms}


def _embedding(word: str, members: list[list[str]]) -> list[float]:
    noise = [(math.sin(sum(map(ord, word)) * (axis + 1)) + 1) / 4 for axis in range(8)]
    raw = [noise[axis] + (word in members[axis] if axis < len(members) else 0) for axis in range(8)]
    length = math.sqrt(sum(value * value for value in raw))
    return unpack(pack_floats([round(value / length, 5) for value in raw]))
