"""OpenClaw homes for tests."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.layouts.records import FileRead, SessionRecord

STORE = "agents/main/agent/openclaw-agent.sqlite"
SCHEMA = """
CREATE TABLE schema_meta (meta_key TEXT PRIMARY KEY, schema_version INTEGER);
CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, label TEXT, parent_session_key TEXT,
  fork_source_session_key TEXT);
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT, previous_session_id TEXT, reason TEXT,
  created_at INTEGER, updated_at INTEGER);
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER, event_zstd BLOB,
  PRIMARY KEY (session_id, seq));
CREATE TABLE session_transcript_active_events (session_id TEXT, active_position INTEGER, event_seq INTEGER);
"""


def make_home(parent: Path, events: list, *, active: list[int] | None = None, session: str = "s1", **columns) -> None:
    (parent / STORE).parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(parent / STORE, isolation_level=None)) as store:
        if not store.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            store.executescript(SCHEMA)
        values = {"session_id": session, "session_key": "agent:main:main", "created_at": 1, "updated_at": 2} | columns
        marks = ", ".join("?" for _ in values)
        store.execute(f"INSERT INTO session_windows ({', '.join(values)}) VALUES ({marks})", [*values.values()])
        for number, event in enumerate(events):
            text = event if isinstance(event, str | None) else json.dumps(event)
            store.execute("INSERT INTO transcript_events VALUES (?, ?, ?, 0, NULL)", [session, number, text])
        for place, number in enumerate(active or []):
            store.execute("INSERT INTO session_transcript_active_events VALUES (?, ?, ?)", [session, place, number])


def message(name: str, parent: str | None, role: str, content, **fields) -> dict:
    outer = {"type": "message", "id": name, "parentId": parent, "timestamp": "2026-11-22T11:12:05.000Z"}
    return outer | {"message": {"role": role, "content": content, "timestamp": 1795345924860} | fields}


def text(words: str) -> list[dict]:
    return [{"type": "text", "text": words}]


def read(parent: Path, known: dict[str, str] | None = None) -> dict[str, FileRead]:
    with Folder(parent) as folder:
        folder.skip_unchanged(known or {})
        return {item.path: item for item in read_folder(folder, detect(folder))}


def session_of(parent: Path, path: str = f"{STORE}#s1") -> SessionRecord:
    [found] = read(parent)[path].items
    assert isinstance(found, SessionRecord)
    return found


def whats(found: FileRead) -> list[str]:
    return [problem.what for problem in found.problems]


def make_files(parent: Path, **files: list) -> None:
    folder = parent / "agents" / "main" / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (folder / name.replace("__", ".")).write_text("\n".join(texts))
