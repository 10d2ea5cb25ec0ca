"""Damaged and random files never make the readers of agents' files raise."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.validation import canonical_json
from tests.lib.test_layouts import DIRECT, SAMPLES, read, source_record

ATLAS = (SAMPLES / "nanobot-0.1" / DIRECT).read_bytes()
mutations = st.lists(st.tuples(st.integers(0, len(ATLAS) - 1), st.binary(max_size=6)), max_size=8)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(mutations)
def test_damaged_files_never_raise_and_every_record_is_imported_or_reported(tmp_path, changes):
    data = bytearray(ATLAS)
    for place, piece in changes:
        data[place : place + len(piece)] = piece
    (tmp_path / "sessions").mkdir(exist_ok=True)
    (tmp_path / "memory").mkdir(exist_ok=True)
    (tmp_path / "memory" / "MEMORY.md").write_text("- x")
    (tmp_path / "sessions" / "cli_direct.jsonl").write_bytes(data)

    found = read(tmp_path)["sessions/cli_direct.jsonl"]

    present = sum(bool(line.strip()) for line in bytes(data).split(b"\n"))
    rejected = sum(problem.outcome == "rejected" for problem in found.problems)
    taken = sum(len(item.entries) for item in found.items)
    has_metadata = not any("metadata line" in problem.what for problem in found.problems)
    skipped = b'"_type": "provider_state"' in data
    assert taken + rejected + has_metadata == present - skipped


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = ["sessions/a.json", "memory/knowledge.json", "state/semantic_cache.json", "kv.json", "semantic_graph.json"]
NAMES += ["observations-1.json", "export.json"]
WRAPPERS = [
    lambda value: value,
    lambda value: {
        "key": value,
        "messages": [value, {"role": "user", "content": value, "tool_calls": value}],
        "summary": value,
    },
    lambda value: {
        "version": 1,
        "entries": [value, {"content": "x", "category": value, "tags": value, "access_count": value}],
    },
    lambda value: {"meta": value, "terms": {"a": value, "b": {"embedding": value, "related": value}}},
    lambda value: {
        "sessionId": value,
        "entries": [{"content": "x", "type": "message", "timestamp": value, "id": value}],
        "summaries": [value, {"id": "s", "content": "x", "originalEntryIds": value}],
    },
    lambda value: [value, {"id": value, "content": "x", "category": "finding", "created_at": value}],
]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(st.sampled_from(NAMES), st.sampled_from(WRAPPERS), values, st.sampled_from(["grip", "grid", "agterm"]))
def test_values_of_any_type_never_raise(tmp_path, name, wrap, value, layout):
    for leftover in tmp_path.rglob("*.json"):
        leftover.unlink()
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(wrap(value)))

    with Folder(tmp_path) as folder:
        for item in read_folder(folder, detect(folder, layout)):
            canonical_json([problem.what for problem in item.problems]).encode()


FIELDS = ["role", "content", "tool_calls", "tool_call_id", "name", "timestamp", "type", "summaryId", "metadata", "id"]
records = st.dictionaries(st.sampled_from(FIELDS), values | st.sampled_from(["user", "tool", "message"]), max_size=8)
calls = st.fixed_dictionaries(
    {}, optional={"id": values, "function": values, "function_name": values, "arguments": values}
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(
    st.lists(records, max_size=3), st.lists(calls, max_size=2), values, st.sampled_from(["nanobot", "grip", "agterm"])
)
def test_records_of_any_shape_never_raise(tmp_path, messages, tool_calls, value, layout):
    messages = [*messages, {"role": "assistant", "tool_calls": tool_calls, "content": "x", "type": "message"}]
    (tmp_path / "sessions").mkdir(exist_ok=True)
    metadata = {"_type": "metadata", "key": "a:b", "metadata": value, "last_archived": value, "created_at": value}
    lines = [json.dumps(record) for record in [metadata, *messages]]
    (tmp_path / "sessions" / "a_b.jsonl").write_text("\n".join(lines))
    (tmp_path / "sessions" / "a_b.json").write_text(
        json.dumps({"key": "a:b", "messages": messages, "summary": value})
    )
    (tmp_path / "e.json").write_text(json.dumps({"sessionId": "s", "entries": messages, "summaries": [value]}))

    with Folder(tmp_path) as folder:
        for item in read_folder(folder, detect(folder, layout)):
            rejected = [problem for problem in item.problems if problem.outcome == "rejected"]
            for found in item.items:
                of_entries = sum("summaries[" not in problem.what for problem in rejected)
                assert len(found.entries) + of_entries == len(messages)
                for entry in found.entries:
                    assert source_record(entry).keys() == set(entry.source_fields)


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=40))
def test_any_text_is_json_or_raises_bad_json(text):
    from memoryhub.lib.validation import decode_json

    try:
        decode_json(text).value  # noqa: B018
    except MemoryHubError as error:
        assert error.message  # noqa: PT017
