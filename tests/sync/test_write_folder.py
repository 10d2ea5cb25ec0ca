from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.file_names import session_names
from memoryhub.lib.layouts.hub import MANIFEST
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.layouts.records import (
    DocumentRecord,
    EntryRecord,
    FileRead,
    HistoryRecord,
    KnowledgeRecord,
    SessionRecord,
    SummaryRecord,
)
from memoryhub.lib.layouts.snapshot import LAYOUTS, Snapshot
from memoryhub.sync.write_folder import write_folder
from tests.hub import raises_code
from tests.records import START, entry_record, session_record

CALL = {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": '{"c": "ls"}'}}
LONGEST = 255  # bytes of a name in a file system


def snapshot(*sessions: SessionRecord, **values) -> Snapshot:
    keys = [session.key for session in sessions]
    whole = {"program": "hub", "identity": "a" * 32, "created_at": START, "keys": keys, "sessions": sessions}
    return Snapshot(**whole | values)


def files(memory: Snapshot, layout: str) -> dict[str, str]:
    return {file.path: b"".join(file.chunks()).decode() for file in write_folder(memory, layout, Counter())}


def read_back(memory: Snapshot, layout: str, place: Path) -> list[FileRead]:
    for path, text in files(memory, layout).items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    return read_all(place)


def read_all(place: Path) -> list[FileRead]:
    with Folder(place) as folder:
        return list(read_folder(folder, detect(folder)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_names_are_distinct_short_and_safe(layout):
    keys = ["a_b:c", "a:b_c", "A:B_c", "../x:1", "x/../../y", "a\\b", "\n", "é" * 500, "é" * 499 + "f"]
    names = session_names(keys, layout)
    folded = [name if layout == "nanobot-current" else name.casefold() for name in names.values()]
    assert len(set(folded)) == len(keys)
    assert not any(character in name for name in names.values() for character in "/\\\n\x00")
    assert max(len(f"{name}.checkpoint.json".encode()) for name in names.values()) <= LONGEST


def test_a_name_does_not_depend_on_the_order_of_the_keys():
    assert session_names(["a_b:c", "a:b_c"], "grip") == session_names(["a:b_c", "a_b:c"], "grip")
    assert session_names(["a_b:c", "a:b_c"], "grip")["a:b_c"] == "a_b_c"


def test_an_entry_of_another_program_keeps_its_time_in_nanobot_and_loses_it_in_grip():
    session = session_record("Hello")
    written = files(snapshot(session, program="agterm", zone=ZoneInfo("Europe/Berlin")), "nanobot")
    message = json.loads(written["sessions/cli_test.jsonl"].splitlines()[1])
    assert message == {"role": "user", "content": "Hello", "timestamp": "2026-03-01T09:00:00"}
    assert "timestamp" not in files(snapshot(session), "grip")["sessions/cli_test.json"]


def test_tool_calls_of_messages_with_text_are_kept_in_agterm():
    called = entry_record("I look.", kind="tool_call", role="assistant", tool_calls=[CALL])
    result = entry_record("a.txt", kind="tool_result", role="tool", name="shell", tool_call_id="c1")
    written = files(snapshot(SessionRecord("cli:x", [called, result])), "agterm")
    entries = json.loads(written["cli_x.json"])["entries"]
    assert entries[0]["metadata"] == {"tool_calls": [CALL]}
    assert entries[1]["metadata"] == {"name": "shell", "tool_call_id": "c1"}


def test_a_summary_is_written_where_the_program_reads_it():
    session = session_record("Hello", summary_text="They met.", title="First")
    current = files(snapshot(session), "nanobot-current")
    head = json.loads(next(text for path, text in current.items() if path.endswith(".jsonl")).splitlines()[0])
    assert head["metadata"] == {"title": "First", "_last_summary": {"text": "They met.", "last_active": None}}
    assert json.loads(files(snapshot(session), "grip")["sessions/cli_test.json"])["summary"] == "They met."


def test_history_without_a_time_gets_the_previous_one_in_grip():
    entries = [HistoryRecord("One", ""), HistoryRecord("Two", "", datetime(2026, 4, 1, 12, 5, tzinfo=UTC))]
    written = files(snapshot(history=[*entries, HistoryRecord("Three", "")]), "grip")
    assert written["memory/HISTORY.md"] == (
        "[2026-03-01 08:00:00 UTC] One\n[2026-04-01 12:05:00 UTC] Two\n[2026-04-01 12:05:00 UTC] Three\n"
    )


def test_a_document_keeps_its_bytes_unless_something_is_added():
    document = DocumentRecord("MEMORY.md", "- a\n", b"- a\r\n")
    fact = KnowledgeRecord("k", "learned_fact", "b")
    assert files(snapshot(documents=[document]), "nanobot")["memory/MEMORY.md"] == "- a\r\n"
    both = files(snapshot(documents=[document], knowledge=[fact]), "nanobot")["memory/MEMORY.md"]
    assert both == "- a\r\n\n## Knowledge\n\n- [learned_fact] b\n"


def test_the_hubs_own_layout_round_trips(tmp_path):
    entries = [
        entry_record("Hello", minute=1, token_count=3, source_id="e1", summary_source_id="s1"),
        entry_record("", kind="tool_call", role="assistant", tool_calls=[CALL], extra={"content": None}),
        entry_record("a file", kind="context", role="system", source_fields=["role", "content"]),
    ]
    summary = SummaryRecord("s1", "They met.", ["e1"], 4, 90, START, START, START, "llm", "m", {"parentId": "s0"})
    session = SessionRecord("cli:x", entries, [summary], 2, "Before", "First", START, START, False, "Why", 3)
    history = HistoryRecord("One", "", START, "[2026-03-01 08:00]", "cli:x", True, "memory/HISTORY.md", {"cursor": 7})
    graph = {"text": "label", "embedding": [0.5, -1.25], "related": ["box"], "extra": {}}
    meta = {"provider": "p", "model": "m", "base_url": "", "dimensions": 2, "built_at_text": ""}
    memory = snapshot(session, history=[history], graph_meta=meta, graph_rows=[graph])
    session_file, history_file, graph_file = read_back(memory, "hub", tmp_path)
    assert session_file.items == [session]
    assert history_file.items[0].entries == [history]
    assert graph_file.items[0].terms[0].embedding == [0.5, -1.25]
    assert [read.problems for read in (session_file, history_file, graph_file)] == [[], [], []]


BAD_ENTRIES = [
    {"role": "user"},
    {"role": "user", "content": "x", "kind": "message", "source_hash": "short"},
    {"role": "", "content": "x", "kind": "message", "source_hash": "0" * 64},
    {"role": "user", "content": "x", "kind": "order", "source_hash": "0" * 64},
    {"role": "user", "content": "x", "kind": "message", "source_hash": "0" * 64, "token_count": -1},
    {"role": "user", "content": "x", "kind": "message", "source_hash": "0" * 64, "tool_calls": [{"id": 1}]},
    {"role": "user", "content": "x", "kind": "message", "source_hash": "0" * 64, "occurred_at": "yesterday"},
    {"role": "user", "content": ["x"], "kind": "message", "source_hash": "0" * 64},
]


@pytest.mark.parametrize("bad", BAD_ENTRIES, ids=str)
def test_a_bad_line_of_an_export_is_reported_and_the_rest_imported(tmp_path, bad):
    read_back(snapshot(session_record("One", "Two")), "hub", tmp_path)
    path = next((tmp_path / "sessions").iterdir())
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], json.dumps({"entry": bad}), lines[2]]))
    (read,) = read_all(tmp_path)
    assert [(problem.line, problem.outcome) for problem in read.problems] == [(3, "rejected")]
    assert [entry.content for entry in read.items[0].entries] == ["One", "Two"]


def test_a_file_of_two_sessions_or_none_is_rejected(tmp_path):
    read_back(snapshot(session_record("One")), "hub", tmp_path)
    path = next((tmp_path / "sessions").iterdir())
    head, entry = path.read_text().splitlines()
    for text in (entry, f"{head}\n{head}\n{entry}"):
        path.write_text(text)
        (read,) = read_all(tmp_path)
        assert read.items == []
        assert read.problems[-1].what == "has no session line, or more than one"


def test_another_version_of_the_format_is_rejected(tmp_path):
    read_back(snapshot(), "hub", tmp_path)
    value = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps(value | {"version": 2}))
    with raises_code("unknown_version"):
        read_all(tmp_path)


def test_a_pointer_beyond_the_entries_is_clamped(tmp_path):
    far = replace(session_record("One"), pointer=9)
    (read,) = read_back(snapshot(far), "hub", tmp_path)
    assert read.items[0].pointer == 1
    assert isinstance(read.items[0].entries[0], EntryRecord)
