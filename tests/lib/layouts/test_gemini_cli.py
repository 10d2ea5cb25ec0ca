from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryhub.lib.files.safe_folder import MAX_LINE_BYTES, Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.gemini_cli import layout as gemini_cli
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.layouts.records import EntryRecord, FileRead, SessionRecord
from tests.shared import FIXTURES

HEAD = {"sessionId": "s1", "projectHash": "h", "startTime": "2026-11-22T11:00:00Z", "kind": "main"}
CHAT = ".gemini/tmp/atlas/chats/session-2026-11-22T11-00-s1.jsonl"
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def user(name: str, text: Any, **fields: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": "2026-11-22T11:00:01Z", "type": "user", "content": text, **fields}


def model(name: str, text: Any = "", **fields: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": "2026-11-22T11:00:02Z", "type": "gemini", "content": text, **fields}


def tool_call(name: str, **fields: Any) -> dict[str, Any]:
    response = {"functionResponse": {"id": name, "name": "ls", "response": {"output": "a.md"}}}
    return {"id": name, "name": "ls", "args": {"dir": "."}, "result": [response], "status": "success", **fields}


def write(place: Path, *records: Any, path: str = CHAT, end: str = "\n") -> None:
    file = place / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(json.dumps(record) for record in records) + end)


def read_all(place: Path) -> dict[str, FileRead]:
    with Folder(place) as folder:
        return {read.path: read for read in read_folder(folder, detect(folder))}


def session(place: Path, *records: Any) -> SessionRecord:
    write(place, HEAD, *records)
    [found] = read_all(place)[CHAT].items
    assert isinstance(found, SessionRecord)
    return found


def shown(record: SessionRecord) -> list[tuple[str, str]]:
    return [(entry.source_id, entry.content) for entry in record.entries]


def by_id(record: SessionRecord) -> dict[str, EntryRecord]:
    return {entry.source_id: entry for entry in record.entries}


@pytest.mark.skipif(not (FIXTURES / "gemini-cli").exists(), reason="the fixtures are not beside the clone")
def test_the_sample_has_one_session_with_three_calls_of_which_two_failed():
    with Folder(FIXTURES / "gemini-cli") as folder:
        [project] = gemini_cli.projects(folder)
        [read] = read_folder(folder, detect(folder))
    [record] = read.items
    assert isinstance(record, SessionRecord)

    assert (project.name, project.path, project.session_count) == ("atlas", "/home/ana/atlas", 1)
    assert not read.problems
    assert sum(entry.role == "user" and not entry.is_injected for entry in record.entries) == 2
    assert sum(len(entry.tool_calls) for entry in record.entries) == 3
    results = [entry for entry in record.entries if entry.kind == "tool_result"]
    assert [entry.extra.get("is_error", False) for entry in results] == [False, True, True]
    assert not any(entry.is_rewound for entry in record.entries)


def test_a_record_that_comes_again_replaces_the_first_at_its_place(tmp_path):
    record = session(tmp_path, model("m1"), user("u1", "then"), model("m1", "done", tokens={"input": 1}))

    assert shown(record) == [("m1", "done"), ("u1", "then")]
    assert record.is_by_id


def test_a_call_and_its_result_are_two_entries_and_the_repeated_result_is_skipped(tmp_path):
    response = {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.md"}}}
    record = session(tmp_path, model("m1", toolCalls=[tool_call("c1")]), user("u1", [response]))

    call, result = record.entries
    assert call.tool_calls == [
        {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"dir": "."}'}}
    ]
    assert (result.kind, result.tool_call_id, result.content, result.source_id) == (
        "tool_result",
        "c1",
        "a.md",
        "m1#1",
    )


@pytest.mark.parametrize(
    ("changes", "is_error"),
    [
        ({"status": "error"}, True),
        ({"status": "cancelled"}, True),
        ({"result": [{"functionResponse": {"response": {"error": "no"}}}]}, True),
        ({}, False),
    ],
)
def test_a_failed_call_stays_visible(tmp_path, changes, is_error):
    record = session(tmp_path, model("m1", toolCalls=[tool_call("c1", **changes)]))

    assert record.entries[1].extra.get("is_error", False) is is_error


def test_a_result_without_a_recorded_call_is_kept(tmp_path):
    calls = [{"functionCall": {"id": "c1", "name": "ls", "args": {}}}]
    response = {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.md"}}}
    record = session(tmp_path, model("m1", calls), user("u1", [response]))

    assert [(entry.kind, entry.content) for entry in record.entries] == [("tool_call", ""), ("tool_result", "a.md")]


def test_a_resumed_session_is_the_same_entries(tmp_path):
    first = [user("u1", [{"text": "hi"}]), model("m1", toolCalls=[tool_call("c1")]), model("m2", "bye")]
    before = session(tmp_path / "before", *first)
    restated = [
        user("u1", [{"text": "hi"}], timestamp="2026-11-23T09:00:00Z"),
        {"id": "m1", "type": "gemini", "content": [{"functionCall": {"id": "c1", "name": "ls", "args": {}}}]},
        model("m2", [{"text": "bye"}], timestamp="2026-11-23T09:00:00Z"),
    ]
    after = session(tmp_path / "after", *first, HEAD, {"$set": {"messages": []}}, {"$set": {"messages": restated}})

    assert after.entries == before.entries


def test_rewound_messages_are_kept_and_marked(tmp_path):
    record = session(tmp_path, user("u1", "a"), user("u2", "b"), {"$rewindTo": "u2"}, user("u3", "c"))

    assert {name: entry.is_rewound for name, entry in by_id(record).items()} == {
        "u1": False,
        "u2": True,
        "u3": False,
    }


def test_a_rewind_to_an_unknown_message_empties_the_conversation_as_in_the_program(tmp_path):
    record = session(tmp_path, user("u1", "a"), {"$rewindTo": "gone"})

    assert record.entries[0].is_rewound


@pytest.mark.parametrize(
    "text",
    [
        "<state_snapshot>We set the pool limit.</state_snapshot>",
        f"Let me think. {'Hm. ' * 100}<state_snapshot>We set the pool limit.</state_snapshot>",
        "We set the pool limit.",
    ],
)
def test_a_compression_folds_the_messages_that_its_summary_replaces(tmp_path, text):
    summary = user("x1", [{"text": text}])
    reply = model("x2", "Got it. Thanks for the additional context!")
    kept = user("u2", [{"text": "b"}])
    change = {"$set": {"messages": [summary, reply, kept]}}
    record = session(tmp_path, user("u1", "a"), model("m1", "ok"), user("u2", "b"), change, model("m3", "c"))

    [folded] = record.summaries
    assert (folded.source_id, folded.entry_source_ids) == ("x1", ["u1", "m1"])
    assert "pool limit" in folded.content
    entries = by_id(record)
    assert (entries["m1"].summary_source_id, entries["m1"].is_rewound) == ("x1", False)
    assert entries["u2"].summary_source_id == ""
    assert "x1" not in entries
    assert entries["s1:x2"].is_injected


def test_an_answer_that_begins_like_the_programs_reply_makes_no_summary(tmp_path):
    reply = model("x2", "Got it. Thanks for the additional context! The bug is in a.py.")
    change = {"$set": {"messages": [user("x1", "it fails in a.py"), reply]}}
    record = session(tmp_path, user("u1", "a"), model("m1", "ok"), change)

    entries = by_id(record)
    assert record.summaries == []
    assert (entries["x1"].content, entries["x2"].is_injected) == ("it fails in a.py", False)


def test_messages_that_a_new_list_lacks_are_marked(tmp_path):
    record = session(tmp_path, user("u1", "a"), user("u2", "b"), {"$set": {"messages": [user("u1", "a")]}})

    assert by_id(record)["u2"].is_rewound


def test_the_programs_own_context_and_notices_are_injected(tmp_path):
    notice = {"id": "i1", "timestamp": "2026-11-22T11:00:03Z", "type": "info", "content": "Update available"}
    record = session(tmp_path, user("u0", [{"text": "<session_context>\nToday"}]), notice, user("u1", "hi"))

    assert [(entry.kind, entry.is_injected) for entry in record.entries] == [
        ("context", True),
        ("context", True),
        ("message", False),
    ]
    assert record.entries[0].source_id == "s1:u0"
    assert record.title == "hi"


def test_thoughts_are_extra_fields_also_of_a_message_with_nothing_else(tmp_path):
    thoughts = [{"subject": "Plan", "description": "secret"}]
    record = session(
        tmp_path, model("m1", thoughts=thoughts), model("m2", [{"text": "hush", "thought": True}, {"text": "ok"}])
    )

    [entry] = record.entries
    assert entry.content == "ok"
    assert entry.extra["thoughts"] == [*thoughts, {"text": "hush", "thought": True}]


def test_images_become_a_placeholder(tmp_path):
    part = {"inlineData": {"mimeType": "image/png", "data": "QUJD" * 1000}}
    response = {"functionResponse": {"id": "c1", "response": {"output": "see"}, "parts": [part]}}
    call = tool_call("c1", result=[response], resultDisplay=part)
    record = session(tmp_path, user("u1", [{"text": "look"}, part]), model("m1", toolCalls=[call]))

    assert record.entries[0].content == "look\n[image, 3,000 bytes]"
    assert record.entries[2].content == "see\n[image, 3,000 bytes]"
    assert "QUJD" not in str(record)


def test_the_title_is_the_programs_summary(tmp_path):
    assert session(tmp_path, user("u1", "hi"), {"$set": {"summary": "Greeting"}}).title == "Greeting"


def test_a_half_written_last_line_is_noted_and_the_rest_read(tmp_path):
    write(tmp_path, HEAD, user("u1", "hi"), end='\n{"id": "u2", "type": "us')

    read = read_all(tmp_path)[CHAT]
    assert [problem.outcome for problem in read.problems] == ["noted"]
    assert [len(item.entries) for item in read.items if isinstance(item, SessionRecord)] == [1]


def test_unknown_records_are_counted_by_kind_and_the_rest_is_read(tmp_path):
    strange = [{"id": "n1", "type": "hologram"}, {"id": "n2", "type": "hologram"}, {"later": 1}, [1]]
    write(tmp_path, HEAD, *strange, user("u1", "hi"))

    read = read_all(tmp_path)[CHAT]
    whats = sorted(problem.what for problem in read.problems)
    assert whats == [
        "a message of the type hologram (2 times, lines 2, 3)",
        "a record of an unknown kind, with later",
        "a record that is a list",
    ]


def test_a_line_over_the_limit_is_reported_and_the_rest_read(tmp_path):
    write(tmp_path, HEAD, user("u0", "x" * MAX_LINE_BYTES), user("u1", "hi"))

    read = read_all(tmp_path)[CHAT]
    assert [(problem.line, problem.outcome) for problem in read.problems] == [(2, "rejected")]
    assert [shown(item) for item in read.items if isinstance(item, SessionRecord)] == [[("u1", "hi")]]


def test_a_session_without_metadata_is_named_after_its_file(tmp_path):
    write(tmp_path, user("u1", "hi"))

    [record] = read_all(tmp_path)[CHAT].items
    assert isinstance(record, SessionRecord)
    assert record.key == "gemini:session-2026-11-22T11-00-s1"


def test_a_subagents_session_names_its_parent(tmp_path):
    path = ".gemini/tmp/atlas/chats/s1/a1.jsonl"
    write(tmp_path, HEAD, user("u1", "hi"))
    write(tmp_path, HEAD | {"sessionId": "a1", "kind": "subagent"}, user("u2", "search"), path=path)

    [record] = read_all(tmp_path)[path].items
    assert isinstance(record, SessionRecord)
    assert (record.key, record.parent_key) == ("gemini:a1", "gemini:s1")


def test_an_older_session_is_read_unless_the_program_continued_it(tmp_path):
    old = HEAD | {"messages": [user("u1", "hi"), model("m1", "hello")]}
    for name in ("session-a", "session-b"):
        write(tmp_path, old, path=f".gemini/tmp/atlas/chats/{name}.json")
    write(tmp_path, HEAD, user("u1", "hi"), path=".gemini/tmp/atlas/chats/session-b.jsonl")

    reads = read_all(tmp_path)
    counts = {path.rpartition("/")[2]: len(read.items) for path, read in reads.items()}
    assert counts == {"session-a.json": 1, "session-b.json": 0, "session-b.jsonl": 1}


def test_projects_are_listed_with_the_paths_that_their_names_stand_for(tmp_path):
    name = hashlib.sha256(b"/home/ana/old").hexdigest()
    write(tmp_path, HEAD, user("u1", "hi"))
    write(tmp_path, HEAD, user("u1", "hi"), path=f".gemini/tmp/{name}/chats/session-1.jsonl")
    write(tmp_path, {"projects": {"/home/ana/atlas": "atlas", "/home/ana/old": "old"}}, path=".gemini/projects.json")

    with Folder(tmp_path) as folder:
        found = {project.path: project.session_count for project in gemini_cli.projects(folder)}
    assert found == {"/home/ana/atlas": 1, "/home/ana/old": 1}


def test_memories_are_a_document_and_prompts_are_not_read_twice(tmp_path):
    write(tmp_path, HEAD, user("u1", "hi"))
    write(tmp_path, [], path=".gemini/tmp/atlas/logs.json")
    (tmp_path / ".gemini/GEMINI.md").write_text("## Gemini Added Memories\n- Ana keeps bees\n")

    reads = read_all(tmp_path)
    assert reads[".gemini/GEMINI.md"].kind == "document"
    assert [problem.outcome for problem in reads[".gemini/tmp/atlas/logs.json"].problems] == ["ignored"]


FIELDS = ["id", "timestamp", "type", "content", "toolCalls", "thoughts", "$set", "$rewindTo", "sessionId", "messages"]
RECORDS = [
    lambda name, value: user("u", "x") | {name: value},
    lambda name, value: model("m", toolCalls=[tool_call("c") | {name: value, "result": value, "args": value}]),
    lambda name, value: {"$set": {name: value, "messages": [value, user("u", [value, {name: value}])]}},
    lambda name, value: model("m", [{"functionCall": value}, {"functionResponse": value}, {"inlineData": value}]),
    lambda name, value: user("u", [{"functionResponse": {"id": value, "name": value, "response": {"error": value}}}]),
]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(st.sampled_from(RECORDS), st.sampled_from(FIELDS), values), max_size=4), st.binary(max_size=8)
)
def test_values_of_any_type_never_raise(tmp_path, changes, junk):
    write(tmp_path, HEAD, *[make(name, value) for make, name, value in changes])
    with (tmp_path / CHAT).open("ab") as file:
        file.write(junk)

    for read in read_all(tmp_path).values():
        for item in read.items:
            if isinstance(item, SessionRecord):
                names = [entry.source_id for entry in item.entries]
                assert len(set(names)) == len(names)
                assert all(0 < len(name) <= 512 for name in names)
