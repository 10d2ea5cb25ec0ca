"""The events of OpenClaw's sessions become entries and summaries."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lib.layouts.openclaw_home import STORE, make_files, make_home, message, read, session_of, text, whats


def test_branch_that_was_left_is_marked_and_a_parent_that_was_never_stored_is_not(tmp_path):
    events = [
        message("a", None, "user", "first"),
        message("b", "a", "user", "left"),
        message("c", "a", "user", "taken"),
        message("d", "never stored", "user", "after"),
    ]
    make_home(tmp_path, events, active=[0, 2, 3])

    assert [(one.content, one.is_rewound) for one in session_of(tmp_path).entries] == [
        ("first", False),
        ("left", True),
        ("taken", False),
        ("after", False),
    ]


def test_without_a_table_of_the_branch_the_parents_decide(tmp_path):
    events = [message("a", None, "user", "1"), message("b", "a", "user", "2"), message("c", "a", "user", "3")]
    make_home(tmp_path, events)

    assert [one.is_rewound for one in session_of(tmp_path).entries] == [False, True, False]


def test_compaction_folds_what_is_before_the_first_kept_record(tmp_path):
    events = [
        message("a", None, "user", "old"),
        {"type": "model_change", "id": "m", "parentId": "a"},
        message("b", "m", "user", "kept"),
        {
            "type": "compaction",
            "id": "k",
            "parentId": "b",
            "summary": "Sum",
            "firstKeptEntryId": "m",
            "tokensBefore": 9,
        },
        message("c", "k", "user", "new"),
        {"type": "compaction", "id": "l", "parentId": "c", "summary": "All", "firstKeptEntryId": "gone"},
    ]
    make_home(tmp_path, events)
    session = session_of(tmp_path)

    assert [(one.source_id, one.summary_source_id) for one in session.entries] == [("a", "k"), ("b", "l"), ("c", "l")]
    assert [(one.source_id, one.content, one.entry_source_ids) for one in session.summaries] == [
        ("k", "Sum", ["a"]),
        ("l", "All", ["b", "c"]),
    ]
    assert session.summaries[0].extra["parentId"] == "l"
    assert session.summaries[0].original_token_count == 9


def test_reset_begins_a_new_epoch(tmp_path):
    events = [
        message("a", None, "user", "before"),
        {"type": "reset", "id": "r", "parentId": "a", "firstKeptEntryId": "a"},
        message("b", "r", "user", "after"),
    ]
    make_home(tmp_path, events)
    records = read(tmp_path)[f"{STORE}#s1"].items

    assert [(one.epoch, [entry.content for entry in one.entries]) for one in records] == [
        (0, ["before"]),
        (1, ["after"]),
    ]
    assert not any(entry.is_rewound for one in records for entry in one.entries)


def test_calls_results_and_failures(tmp_path):
    call = {"type": "toolCall", "id": "call_1", "name": "exec", "arguments": {"command": "ls"}}
    image = {"type": "image", "data": "QUJD" * 100, "mimeType": "image/png"}
    events = [
        message("a", None, "assistant", [{"type": "thinking", "thinking": "secret"}, *text("Look:"), call]),
        message("b", "a", "toolResult", [*text("no"), image], toolCallId="call_1", toolName="exec", isError=True),
    ]
    make_home(tmp_path, events)
    answer, result = session_of(tmp_path).entries

    assert (answer.kind, answer.content) == ("tool_call", "Look:")
    assert answer.tool_calls[0]["function"] == {"name": "exec", "arguments": '{"command": "ls"}'}
    assert answer.extra["thinking"] == [{"type": "thinking", "thinking": "secret"}]
    assert (result.kind, result.tool_call_id, result.name) == ("tool_result", "call_1", "exec")
    assert result.content == "no\n[image, 300 bytes]"
    assert result.extra["is_error"] is True
    assert "QUJD" not in json.dumps(result.extra)


def test_reasoning_without_an_answer_belongs_to_the_next_one(tmp_path):
    thought = [{"type": "thinking", "thinking": "hm"}]
    events = [
        message("a", None, "user", "hi"),
        message("b", "a", "assistant", thought),
        message("c", "b", "assistant", text("hello")),
        message("d", "c", "assistant", thought),
        message("e", "d", "user", "bye"),
    ]
    make_home(tmp_path, events)

    found = [(one.source_id, len(one.extra.get("thinking", []))) for one in session_of(tmp_path).entries]
    assert found == [("a", 0), ("c", 2), ("e", 0)]


def test_what_the_program_adds_is_injected(tmp_path):
    block = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nrunning: none\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
    envelope = 'Conversation info (untrusted metadata):\n```json\n{"chat": 1}\n```'
    events = [
        message("a", None, "user", f"{envelope}\n\nHello\n{block}"),
        message("b", "a", "user", block),
        message("c", "b", "user", "task done", provenance={"kind": "internal_system"}),
        message("d", "c", "assistant", text("NO_REPLY")),
        {
            "type": "custom_message",
            "id": "e",
            "parentId": "d",
            "customType": "note",
            "content": "n",
            "display": False,
        },
    ]
    make_home(tmp_path, events)
    entries = session_of(tmp_path).entries

    assert [(one.source_id, one.kind, one.is_injected) for one in entries] == [
        ("a#1", "context", True),
        ("a#2", "context", True),
        ("a", "message", False),
        ("b", "context", True),
        ("c", "context", True),
        ("d", "context", True),
        ("e", "context", True),
    ]
    assert [one.content for one in entries if not one.is_injected] == ["Hello"]


def test_heartbeat_without_a_result_is_hidden_as_a_whole(tmp_path):
    call = {"type": "toolCall", "id": "call_1", "name": "read", "arguments": {}}
    events = [
        message("a", None, "user", "Read HEARTBEAT.md if it exists."),
        message("b", "a", "assistant", [call]),
        message("c", "b", "toolResult", text("empty"), toolCallId="call_1"),
        message("d", "c", "assistant", text("HEARTBEAT_OK")),
        message("e", "d", "user", "Read HEARTBEAT.md if it exists."),
        message("f", "e", "assistant", text("Your meeting starts.")),
    ]
    make_home(tmp_path, events)

    assert [one.is_injected for one in session_of(tmp_path).entries] == [True] * 4 + [False] * 2


def test_what_cannot_be_read_is_reported_by_name(tmp_path):
    events = [
        message("a", None, "user", "kept"),
        "{not json",
        "[1]",
        {"type": "hologram", "id": "h", "parentId": "a"},
        {"type": "hologram", "id": "i", "parentId": "h"},
        message("a", "i", "user", "same id"),
        message("j", "a", "oracle", "who?"),
        {"type": "message", "id": "k", "parentId": "j", "message": "text"},
        message("l", "k", "user", "late")
        | {"timestamp": "no time", "message": {"role": "user", "content": "late", "timestamp": {}}},
        None,
    ]
    make_home(tmp_path, events)
    found = read(tmp_path)[f"{STORE}#s1"]

    assert whats(found) == [
        "a record is not JSON (record 1)",
        "a record is not an object (record 2)",
        "a record is not JSON text (record 9)",
        "a record of the type hologram (2 times, records 3, 4)",
        "two records have the same id (record 5)",
        "a message of the role oracle (record 6)",
        "a message is not an object (record 7)",
        "the timestamp is invalid; its text is kept (record 8)",
    ]
    assert [one.content for one in found.items[0].entries] == ["kept", "same id", "who?", "late"]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "id"]), inner, max_size=3)
    ),
    max_leaves=6,
)
TYPES = ["message", "compaction", "session", "reset", "branch_summary", "custom_message", "session_info"]
FIELDS = ["id", "parentId", "timestamp", "summary", "firstKeptEntryId", "content", "name", "tokensBefore"]
INNER = ["role", "content", "timestamp", "toolCallId", "toolName", "isError", "details", "provenance", "errorMessage"]
events = st.builds(
    lambda kind, outer, inner, role: {**outer, "type": kind, "message": {**inner, **role}},
    st.sampled_from(TYPES),
    st.dictionaries(st.sampled_from(FIELDS), values),
    st.dictionaries(st.sampled_from(INNER), values),
    st.sampled_from([{"role": "user"}, {"role": "assistant"}, {"role": "toolResult"}, {}]),
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80)
@given(st.lists(events, max_size=5), st.integers(0, 400))
def test_odd_records_never_raise(tmp_path, made, cut):
    whole = "\n".join(map(json.dumps, made))
    make_files(tmp_path, odd__jsonl=[whole], cut__jsonl=[whole[:cut]])

    for found in read(tmp_path).values():
        ids = [one.source_id for item in found.items for one in item.entries]
        assert len(ids) == len(set(ids))
        json.dumps([one.extra for item in found.items for one in item.entries])
