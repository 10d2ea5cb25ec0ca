"""Readers of agents' files, on small samples."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.grip import content_id
from memoryhub.lib.layouts.nanobot.layout import decoded_key
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.layouts.records import (
    EntryRecord,
    FileRead,
    GraphRecord,
    HistoryLog,
    KeyValueRecord,
    KnowledgeRecord,
    ObservationRecord,
    SessionRecord,
)
from tests.hub import raises_code

SAMPLES = Path(__file__).resolve().parent.parent / "samples"


def read(path: Path, **options) -> dict[str, FileRead]:
    with Folder(path) as folder:
        return {item.path: item for item in read_folder(folder, detect(folder), **options)}


def session(reads: dict[str, FileRead], path: str) -> SessionRecord:
    [found] = reads[path].items
    assert isinstance(found, SessionRecord)
    return found


def source_record(entry: EntryRecord) -> dict:
    """Restore an entry's source record, as described in records.py."""
    known = {
        "id": entry.source_id,
        "type": entry.kind,
        "summaryId": entry.summary_source_id,
        "role": entry.role,
        "content": entry.content,
        "tool_calls": entry.tool_calls,
        "tool_call_id": entry.tool_call_id,
        "name": entry.name,
        "timestamp": entry.occurred_at_text,
    } | entry.extra
    return {name: known[name] for name in entry.source_fields}


@pytest.fixture(scope="module")
def classic() -> dict[str, FileRead]:
    return read(SAMPLES / "nanobot-0.1")


DIRECT = "workspace/sessions/cli_direct.jsonl"


def test_an_older_file_gets_its_key_from_its_name(classic):
    old = session(classic, "sessions/cli_old.jsonl")

    assert old.key == "cli:old"
    assert old.entries[0].content == "grüß dich"
    assert old.is_visible_to_agent


def test_every_entry_restores_its_source_record(classic):
    lines = (SAMPLES / "nanobot-0.1" / DIRECT).read_text().split("\n")[1:6]

    rebuilt = [source_record(entry) for entry in session(classic, DIRECT).entries]

    assert rebuilt == [json.loads(line) for line in lines]
    assert [list(record) for record in rebuilt] == [list(json.loads(line)) for line in lines]


def test_content_kinds_and_times_are_read(classic):
    entries = session(classic, DIRECT).entries

    assert [entry.kind for entry in entries] == ["message", "tool_call", "tool_result", "message", "message"]
    assert entries[0].content == "what is on this\n[image]"
    assert entries[0].occurred_at == datetime(2026, 1, 3, 10, tzinfo=UTC)
    assert (entries[4].occurred_at, entries[4].occurred_at_text) == (None, "no time at all")


def test_a_time_without_a_zone_uses_the_given_one():
    reads = read(SAMPLES / "nanobot-0.1", zone=ZoneInfo("Europe/Berlin"))

    assert session(reads, DIRECT).entries[0].occurred_at == datetime(2026, 1, 3, 9, tzinfo=UTC)


def test_a_truncated_line_is_rejected_with_an_excerpt(classic):
    problems = classic[DIRECT].problems

    assert [(problem.line, problem.outcome) for problem in problems] == [(6, "repaired"), (7, "rejected")]
    assert problems[1].raw == b'{"role": "assistant", "con'


def test_history_is_split_at_blank_lines_and_dates(classic):
    [log] = classic["workspace/memory/HISTORY.md"].items

    assert isinstance(log, HistoryLog)
    assert [entry.content for entry in log.entries] == [
        "Ana showed a plan.\nIt has boxes.",
        "Nobody dated this one.",
        "An impossible day.",
    ]
    assert log.entries[2].occurred_at is None
    assert log.entries[2].occurred_at_text == "[2026-13-40 10:00]"


def test_only_numbers_are_read_from_a_configuration():
    with Folder(SAMPLES / "nanobot-0.1") as folder:
        assert detect(folder).settings == {"memory_window": 20}


@pytest.mark.parametrize(
    ("name", "key"),
    [("Y2xpOmRpcmVjdA", "cli:direct"), ("aGVhcnRiZWF0", "heartbeat"), ("cli_direct", None), ("heartbeat", None)],
)
def test_encoded_names_are_distinguished_from_readable_ones(name, key):
    assert decoded_key(name) == key


@pytest.mark.parametrize(
    ("value", "messages", "pointer"),
    [(2, 3, 2), (3, 3, 3), (4, 3, 0), (-1, 3, 0), ("2", 3, 0), (True, 3, 0), (None, 3, 0), (1.5, 3, 0)],
)
def test_a_pointer_out_of_range_is_zero_and_reported(value, messages, pointer, tmp_path):
    (tmp_path / "sessions").mkdir()
    lines = [{"_type": "metadata", "key": "a:b", "last_consolidated": value}]
    lines += [{"role": "user", "content": str(i)} for i in range(messages)]
    (tmp_path / "sessions" / "a_b.jsonl").write_text("\n".join(json.dumps(line) for line in lines))

    found = read(tmp_path)["sessions/a_b.jsonl"]

    assert found.items[0].pointer == pointer
    assert bool(found.problems) == (value != pointer or isinstance(value, bool))


def test_a_rejected_line_before_the_pointer_moves_it(tmp_path):
    (tmp_path / "sessions").mkdir()
    good = '{"role": "user", "content": "x"}\n'
    text = '{"_type": "metadata", "key": "a:b", "last_consolidated": 2}\n' + good + "broken\n" + good
    (tmp_path / "sessions" / "a_b.jsonl").write_text(text)

    assert session(read(tmp_path), "sessions/a_b.jsonl").pointer == 1


def write(folder: Path, **files: object) -> Path:
    for name, value in files.items():
        path = folder / name.replace("__", "/").replace("_json", ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


def test_both_formats_of_grips_tool_calls_are_read(tmp_path):
    calls = [{"id": "a", "function_name": "run", "arguments": {"b": 1, "a": 2}}]
    text = [{"id": "b", "function_name": "run", "arguments": '{"x": 1}'}]
    messages = [{"role": "assistant", "tool_calls": calls}, {"role": "assistant", "tool_calls": text}]
    value = {"key": "cli:x", "messages": messages, "summary": None, "created_at": 1.0, "updated_at": 2.0}

    found = session(
        read(write(tmp_path, sessions__cli_x_json=value)), "sessions/cli.x.json".replace("cli.x", "cli_x")
    )

    assert [entry.tool_calls[0]["function"]["arguments"] for entry in found.entries] == [
        '{"b": 1, "a": 2}',
        '{"x": 1}',
    ]
    assert [source_record(entry) for entry in found.entries] == messages


def test_grid_sessions_become_conversations(tmp_path):
    (tmp_path / "sessions").mkdir()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "audit.log").write_text("x")
    at = "2026-01-02T03:04:0{}Z"
    place = {"goal": "audit", "step": "list"}
    events = [
        {"_type": "header", "id": "s-1", "workflow_name": "Weekly audit", "inputs": {}, "created_at": at.format(0)},
        {"_type": "event", "seq": 1, "type": "goal_start", "timestamp": at.format(1)} | place,
        {"_type": "event", "seq": 2, "type": "user", "timestamp": at.format(2), "content": "List the files"} | place,
        {"_type": "event", "seq": 3, "type": "tool_call", "timestamp": at.format(3), "corr_id": "c1", "tool": "bash",
         "args": {"cmd": "ls"}},
        {"_type": "event", "seq": 4, "type": "tool_result", "timestamp": at.format(4), "corr_id": "c1",
         "tool": "bash", "content": "a.txt"},
        {"_type": "event", "seq": 5, "type": "assistant", "timestamp": at.format(5), "content": "One file."},
        {"_type": "footer", "status": "complete"},
    ]  # fmt: skip
    lines = [json.dumps(event, separators=(",", ":")) for event in events]
    (tmp_path / "sessions" / "s-1.jsonl").write_text("\n".join([*lines, "broken"]) + "\n")

    reads = read(tmp_path)
    found = session(reads, "sessions/s-1.jsonl")

    assert (found.key, found.title, f"{found.updated_at:%S}") == ("s-1", "Weekly audit", "05")
    assert [(entry.role, entry.content) for entry in found.entries] == [
        ("user", "List the files"),
        ("assistant", ""),
        ("tool", "a.txt"),
        ("assistant", "One file."),
    ]
    assert found.entries[1].tool_calls[0]["function"] == {"name": "bash", "arguments": '{"cmd": "ls"}'}
    assert found.entries[2].tool_call_id == found.entries[1].tool_calls[0]["id"] == "c1"
    assert found.entries[0].extra == place | {"source": "audit:list"}
    outcomes = [problem.outcome for problem in reads["sessions/s-1.jsonl"].problems]
    assert outcomes == ["rejected", "ignored"]
    assert reads["logs/audit.log"].problems[0].outcome == "ignored"


def test_last_metadata_line_wins(tmp_path):
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    first = {"_type": "metadata", "key": "cli:x", "metadata": {"title": "Old"}, "last_consolidated": 0}
    lines = [first, {"role": "user", "content": "a"}, first | {"metadata": {"title": "New"}, "last_consolidated": 1}]
    (sessions / "cli_x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "HISTORY.md").write_text("[2026-01-01 10:00] one\n")

    read_file = read(tmp_path)["sessions/cli_x.jsonl"]

    [found] = read_file.items
    assert (found.pointer, found.title, len(found.entries), read_file.problems) == (1, "New", 1, [])


def test_numeric_tool_call_ids_become_text(tmp_path):
    call = {"id": 1, "type": "function", "function": {"name": "run", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call, call | {"id": 2.5}]},
        {"role": "tool", "tool_call_id": 1, "content": "one"},
        {"role": "tool", "tool_call_id": 2.5, "content": "two"},
        {"role": "tool", "tool_call_id": True, "content": "three"},
    ]
    value = {"key": "cli:x", "messages": messages, "summary": None, "created_at": 1.0, "updated_at": 2.0}

    found = session(read(write(tmp_path, sessions__cli_x_json=value)), "sessions/cli_x.json")

    assert [call["id"] for call in found.entries[0].tool_calls] == ["1", "2.5"]
    assert [entry.tool_call_id for entry in found.entries] == ["", "1", "2.5", ""]
    assert [source_record(entry) for entry in found.entries] == messages


def test_an_entry_split_by_a_rotation_is_joined(tmp_path):
    memory = tmp_path / "memory"
    memory.mkdir()
    (memory / "HISTORY.archive.20260101000000.md").write_text("# Log\n[2026-01-01 10:00:00 UTC] User: one\n")
    (memory / "HISTORY.md").write_text("two\n[2026-01-02 10:00:00 UTC] Assistant: three\n")
    (memory / "knowledge.json").write_text('{"version": 1, "entries": []}')

    [log] = read(tmp_path)["memory/HISTORY.md"].items

    assert [(entry.content, entry.is_archived) for entry in log.entries] == [
        ("User: one\ntwo", True),
        ("Assistant: three", False),
    ]
    assert log.extra == {"preamble": "# Log"}


def test_a_knowledge_id_is_grips_own():
    assert content_id("user_preference", "bullet points over paragraphs ") == "d0381f79a9868d63"


def test_times_of_grip_may_be_text(tmp_path):
    rows = [{"id": "a", "content": "tea", "created_at": "2026-03-01T10:00:00+02:00", "category": "learned_fact"}]

    found = read(write(tmp_path, memory__knowledge_json={"version": 1, "entries": rows}))["memory/knowledge.json"]

    [record] = found.items
    assert (record.created_at.isoformat(), found.problems) == ("2026-03-01T08:00:00+00:00", [])
    assert record.extra == {"created_at": "2026-03-01T10:00:00+02:00"}


def test_invalid_knowledge_is_repaired_or_rejected(tmp_path):
    rows = [
        {"id": "1", "category": "hunch", "content": "c", "tags": "a, b"},
        {"content": "d"},
        {"id": "1", "content": "e"},
        5,
    ]

    found = read(write(tmp_path, memory__knowledge_json={"version": 1, "entries": rows}))["memory/knowledge.json"]

    first, second = found.items
    assert isinstance(first, KnowledgeRecord)
    assert (first.category, first.tags, first.extra) == (
        "learned_fact",
        ["a", "b"],
        {"category": "hunch", "tags": "a, b"},
    )
    assert second.content_id == content_id("learned_fact", "d")
    assert [problem.outcome for problem in found.problems] == [
        "repaired",
        "repaired",
        "repaired",
        "rejected",
        "rejected",
    ]


def test_values_of_other_types_keep_their_json(tmp_path):
    found = read(write(tmp_path, kv_json='{"a": true, "b": {"y": 1, "x": [2]}, "c": "text", "d": 90071992547409931}'))

    assert found["kv.json"].items == [
        KeyValueRecord("a", "true", is_json=True),
        KeyValueRecord("b", '{"y": 1, "x": [2]}', is_json=True),
        KeyValueRecord("c", "text"),
        KeyValueRecord("d", "90071992547409931", is_json=True),
    ]


def test_a_cyclic_graph_is_read(tmp_path):
    terms = {
        "a": {"embedding": [1, 0], "related": ["b", "a", "b"]},
        "b": {"embedding": [1], "related": ["a"]},
        "c": 1,
    }

    found = read(
        write(tmp_path, semantic_graph_json={"meta": {"dimensions": 2}, "terms": terms}),
    )

    read_file = next(iter(found.values()))
    [graph] = read_file.items
    assert isinstance(graph, GraphRecord)
    assert [(term.text, term.related) for term in graph.terms] == [("a", ["b"]), ("b", ["a"])]
    assert [problem.outcome for problem in read_file.problems] == ["repaired", "repaired", "rejected"]


def test_a_list_of_observations_has_partial_ids(tmp_path):
    (tmp_path / "list.txt").write_text(
        "=== Findings (1) ===\n1. [18819c87] one\nmore\n\n=== Lessons (1) ===\n1. [2ca58dfd] two\n"
    )

    assert read(tmp_path)["list.txt"].items == [
        ObservationRecord("18819c87", "finding", "one\nmore", is_partial=True),
        ObservationRecord("2ca58dfd", "lesson", "two", is_partial=True),
    ]


@pytest.mark.parametrize(
    ("files", "layout"),
    [
        ({"kv_json": {}}, "grid"),
        ({"semantic_graph_json": "broken"}, "grid"),
        ({"sessions__a_json": {"key": "a", "messages": []}}, "grip"),
        ({"sessions__a_json": '{"key": "a", "messages": [{"ro'}, "grip"),
        ({"memory__MEMORY.md": "- x"}, "nanobot"),
        ({"one_json": {"sessionId": "s", "entries": []}}, "agterm"),
    ],
)
def test_the_layout_of_a_folder_is_detected(files, layout, tmp_path):
    with Folder(write(tmp_path, **files)) as folder:
        assert detect(folder).layout == layout


def test_an_unknown_folder_is_refused(tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"\xff")

    with Folder(tmp_path) as folder, raises_code("unknown_layout", match="Supported are"):
        detect(folder)
