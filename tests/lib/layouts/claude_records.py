"""Small transcripts of Claude Code for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.claude_code import layout as claude_code
from memoryhub.lib.layouts.records import EntryRecord, FileRead, SessionRecord

SESSION = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"


def line(kind: str, uuid: str, parent: str | None, at: int = 0, **fields: Any) -> dict[str, Any]:
    """Return a record of the tree. ``at``: minutes after 10:00."""
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": SESSION,
        "isSidechain": False,
        "timestamp": f"2026-11-22T{10 + at // 60:02}:{at % 60:02}:00.000Z",
        "cwd": "/home/ana/atlas",
        **fields,
    }


def user(uuid: str, parent: str | None, content: Any, at: int = 0, **fields: Any) -> dict[str, Any]:
    return line("user", uuid, parent, at, message={"role": "user", "content": content}, **fields)


def answer(
    uuid: str, parent: str | None, *parts: Any, message: str = "", at: int = 0, **fields: Any
) -> dict[str, Any]:
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    body = {"id": message or f"msg_{uuid}", "role": "assistant", "model": "m", "content": content}
    return line("assistant", uuid, parent, at, message=body | fields.pop("about", {}), **fields)


def call(name: str, **values: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"call_{name}", "name": "Bash", "input": values}


def result(uuid: str, parent: str, name: str, content: Any = "done", **fields: Any) -> dict[str, Any]:
    part = {"type": "tool_result", "tool_use_id": f"call_{name}", "content": content, "is_error": False}
    return user(uuid, parent, [part | fields.pop("part", {})], **fields)


def write(home: Path, records: list[Any], name: str = SESSION, project: str = "-home-ana-atlas") -> Path:
    """Write a transcript; texts are written as lines of their own."""
    path = home / "projects" / project / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [item if isinstance(item, str) else json.dumps(item) for item in records]
    path.write_bytes("".join(f"{text}\n" for text in lines).encode("utf-8", "surrogatepass"))
    return path


def read(home: Path) -> list[FileRead]:
    with Folder(home) as folder:
        detected = claude_code.find(folder)
        assert detected is not None
        return list(claude_code.read(folder, detected))


def sessions(home: Path) -> list[SessionRecord]:
    return [item for file in read(home) for item in file.items if isinstance(item, SessionRecord)]


def session(home: Path, records: list[Any]) -> SessionRecord:
    """Write a transcript and return its session."""
    write(home, records)
    [found] = sessions(home)
    return found


def outline(found: SessionRecord) -> list[tuple[str, str, str]]:
    return [(entry.source_id, entry.kind, entry.content) for entry in found.entries]


def marked(found: SessionRecord) -> list[str]:
    return [entry.source_id for entry in found.entries if entry.is_rewound]


def by_id(found: SessionRecord) -> dict[str, EntryRecord]:
    return {entry.source_id: entry for entry in found.entries}
