"""Read Codex's rollouts and memory."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.codex import layout as codex
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.layouts.records import DocumentRecord, FileRead, SessionRecord
from tests.lib.layouts.random_json import damaged_bytes, replaced
from tests.shared import FIXTURES

FIXTURE = FIXTURES / "codex"
FIRST, SECOND = "01a202e9-0000-7000-8000-000000000001", "01a202e9-0000-7000-8000-000000000002"


def meta(name: str = FIRST, **fields: Any) -> dict[str, Any]:
    payload = {"id": name, "timestamp": "2026-11-22T11:00:00Z", "cwd": "/home/ana/atlas", "source": "exec", **fields}
    return {"timestamp": "2026-11-22T11:00:00Z", "ordinal": 0, "type": "session_meta", "payload": payload}


def item(kind: str, ordinal: int = 1, **fields: Any) -> dict[str, Any]:
    time = f"2026-11-22T11:{ordinal:02}:00Z"
    return {"timestamp": time, "ordinal": ordinal, "type": "response_item", "payload": {"type": kind, **fields}}


def said(role: str, text: str, ordinal: int = 1, **fields: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", ordinal, role=role, content=[{"type": kind, "text": text}], **fields)


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-22T11:00:00Z", "type": "event_msg", "payload": {"type": kind, **fields}}


def write(home: Path, records: list[Any], name: str = FIRST, day: str = "22") -> Path:
    path = home / "sessions" / "2026" / "11" / day / f"rollout-2026-11-{day}T11-00-00-{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))
    return path


def read(home: Path, project: str = "") -> list[FileRead]:
    with Folder(home) as folder:
        detected = codex.find(folder)
        assert detected is not None
        return list(codex.read(folder, replace(detected, project=project)))


def sessions(home: Path, project: str = "") -> list[SessionRecord]:
    return [found for file in read(home, project) for found in file.items if isinstance(found, SessionRecord)]


def session(home: Path, records: list[Any]) -> SessionRecord:
    write(home, records)
    [found] = sessions(home)
    return found


def outline(found: SessionRecord) -> list[tuple[str, str]]:
    return [(entry.kind, entry.content) for entry in found.entries]


@pytest.mark.skipif(not FIXTURE.exists(), reason="the shared samples are not here")
def test_the_sample_home_has_a_session_with_two_prompts_and_three_calls():
    with Folder(FIXTURE) as folder:
        detected = detect(folder)
        files = list(read_folder(folder, detected))
        [project] = codex.projects(folder)
    [file] = files
    [found] = file.items

    assert isinstance(found, SessionRecord)
    assert (detected.layout, found.key) == ("codex", "codex:01a202e9-f05e-76d1-baf8-dd8161a1754b")
    assert [entry.kind for entry in found.entries if entry.role == "user"] == ["context", "message", "message"]
    assert sum(len(entry.tool_calls) for entry in found.entries) == 3
    assert [entry.extra.get("is_error") for entry in found.entries if entry.kind == "tool_result"] == [
        None,
        None,
        True,
    ]
    assert len({entry.source_id for entry in found.entries}) == len(found.entries) == 12
    assert (project.name, project.label, project.session_count) == ("/home/ana/atlas", "atlas", 1)


def test_messages_are_read_once_although_events_repeat_them(tmp_path):
    found = session(
        tmp_path,
        [meta(), said("user", "Hello"), event("user_message", message="Hello"), said("assistant", "Hi")],
    )

    assert outline(found) == [("message", "Hello"), ("message", "Hi")]
    assert found.title == "Hello"


def test_a_file_with_only_events_is_read_from_them(tmp_path):
    found = session(
        tmp_path,
        [
            meta(),
            event("user_message", message="Hello"),
            event("exec_command_end", call_id="c1", command=["ls"], aggregated_output="a.txt", exit_code=1),
            event("agent_message", message="Hi"),
        ],
    )

    assert outline(found) == [("message", "Hello"), ("tool_call", ""), ("tool_result", "a.txt"), ("message", "Hi")]
    assert found.entries[2].extra["is_error"] is True


def test_files_of_2025_have_items_without_wrappers(tmp_path):
    context = "<environment_context>\nCurrent working directory: /home/ana/old\n</environment_context>"
    records = [
        {"id": FIRST, "timestamp": "2025-06-01T10:00:00Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": context}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": '{"output":"none","metadata":{"exit_code":2}}'},
    ]
    found = session(tmp_path, records)

    assert [(entry.kind, entry.is_injected) for entry in found.entries] == [
        ("context", True),
        ("message", False),
        ("tool_call", False),
        ("tool_result", False),
    ]
    assert (found.entries[3].content, found.entries[3].extra["is_error"]) == ("none", True)
    with Folder(tmp_path) as folder:
        assert [project.name for project in codex.projects(folder)] == ["/home/ana/old"]


@pytest.mark.parametrize(
    ("call", "name", "arguments"),
    [
        ({"type": "custom_tool_call", "name": "apply_patch", "input": "*** x"}, "apply_patch", {"input": "*** x"}),
        ({"type": "local_shell_call", "action": {"command": ["ls"]}}, "local_shell", {"command": ["ls"]}),
        ({"type": "web_search_call", "id": "ws", "action": {"query": "q"}}, "web_search", {"query": "q"}),
        ({"type": "tool_search_call", "arguments": {"q": 1}}, "tool_search", {"q": 1}),
    ],
)
def test_every_kind_of_call_is_a_tool_call(tmp_path, call, name, arguments):
    found = session(tmp_path, [meta(), item(**{"kind": call.pop("type"), "call_id": "c1", **call})])
    [made] = found.entries[0].tool_calls

    assert (made["id"], made["function"]["name"], json.loads(made["function"]["arguments"])) == (
        "c1",
        name,
        arguments,
    )


def test_context_that_the_program_added_is_injected(tmp_path):
    found = session(
        tmp_path,
        [
            meta(),
            said("developer", "Permissions"),
            said("user", "# AGENTS.md instructions for /home"),
            said("user", "<turn_aborted>\nx"),
            said("user", "Hello"),
        ],
    )

    assert [entry.is_injected for entry in found.entries] == [True, True, True, False]
    assert found.title == "Hello"


def test_reasoning_belongs_to_the_next_answer_and_is_never_content(tmp_path):
    reasoning = {"summary": [{"type": "summary_text", "text": "secret plan"}], "encrypted_content": "gAAAA"}
    found = session(tmp_path, [meta(), item("reasoning", **reasoning), said("assistant", "Hi")])

    assert outline(found) == [("message", "Hi")]
    assert found.entries[0].extra["reasoning"] == ["secret plan"]
    assert "gAAAA" not in repr(found)


@pytest.mark.parametrize("odd", [5, True, "text", {"text": "x"}, [None, {"text": 5}]])
def test_reasoning_of_an_unknown_shape_is_skipped(tmp_path, odd):
    found = session(tmp_path, [meta(), item("reasoning", summary=odd, content=odd), said("assistant", "Hi")])

    assert "reasoning" not in found.entries[0].extra


def test_turns_that_were_rolled_back_are_marked(tmp_path):
    found = session(
        tmp_path,
        [
            meta(),
            said("user", "One"),
            said("assistant", "1"),
            said("user", "Two"),
            said("assistant", "2"),
            said("user", "Three"),
            event("thread_rolled_back", num_turns=2),
            said("user", "Four"),
        ],
    )

    assert [entry.content for entry in found.entries if entry.is_rewound] == ["Two", "2", "Three"]


def test_a_compaction_folds_all_but_what_the_new_history_repeats(tmp_path):
    history = [said("user", "One")["payload"], said("user", "So far: one")["payload"]]
    found = session(
        tmp_path,
        [
            meta(),
            said("user", "One"),
            said("assistant", "1"),
            {"type": "compacted", "payload": {"message": "So far: one", "replacement_history": history}},
            said("user", "Two"),
            {"type": "compacted", "payload": {"message": "So far: two"}},
        ],
    )
    first, second = found.summaries

    assert [entry.summary_source_id for entry in found.entries] == [
        second.source_id,
        first.source_id,
        second.source_id,
    ]
    assert (first.content, first.extra["parentId"]) == ("So far: one", second.source_id)


def test_an_encrypted_summary_is_reported_and_folds_nothing(tmp_path):
    history = [{"type": "compaction", "encrypted_content": "gAAAA"}]
    write(tmp_path, [meta(), said("user", "A"), {"type": "compacted", "payload": {"replacement_history": history}}])
    [file] = read(tmp_path)
    [found] = file.items

    assert isinstance(found, SessionRecord)
    assert (found.summaries, found.entries[0].summary_source_id) == ([], "")
    assert [problem.outcome for problem in file.problems] == ["noted"]


def test_a_fork_that_repeats_its_session_has_the_same_ids(tmp_path):
    shared = [meta(), said("user", "One"), said("assistant", "1", id="short")]
    write(tmp_path, [*shared, said("user", "Original")])
    write(tmp_path, [meta(SECOND, forked_from_id=FIRST), *shared, said("user", "Fork")], SECOND, "23")
    original, fork = sessions(tmp_path)
    own = [{(entry.source_id, entry.source_hash) for entry in found.entries} for found in (original, fork)]

    assert (fork.key, fork.forked_from, original.forked_from) == (f"codex:{SECOND}", f"codex:{FIRST}", "")
    assert [len(own[0] & own[1]), len(own[1])] == [2, 3]


def test_a_fork_that_refers_to_its_session_has_its_entries_up_to_there(tmp_path):
    compacted = {"type": "compacted", "ordinal": 4, "payload": {"message": "Later"}}
    write(tmp_path, [meta(), said("user", "One", 1), said("assistant", "1", 2), said("user", "Two", 3), compacted])
    fork = meta(SECOND, forked_from_id=FIRST, forked_from_ordinal_exclusive=3)
    write(tmp_path, [fork, said("user", "Fork", 4)], SECOND, "23")
    found = sessions(tmp_path)[1]

    assert outline(found) == [("message", "One"), ("message", "1"), ("message", "Fork")]
    assert [entry.source_id for entry in found.entries[:2]] == [
        entry.source_id for entry in sessions(tmp_path)[0].entries[:2]
    ]
    assert not any(entry.summary_source_id for entry in found.entries)


def test_a_fork_whose_session_is_gone_says_so(tmp_path):
    fork = meta(SECOND, forked_from_id=FIRST, forked_from_ordinal_exclusive=3)
    write(tmp_path, [fork, said("user", "Fork", 4)], SECOND)
    [file] = read(tmp_path)

    assert "forked from" in file.problems[0].what


def test_a_subagent_names_the_session_that_started_it(tmp_path):
    source = {"subagent": {"thread_spawn": {"parent_thread_id": FIRST, "depth": 1}}}
    write(tmp_path, [meta(SECOND, source=source), said("user", "Count")], SECOND)

    assert sessions(tmp_path)[0].parent_key == f"codex:{FIRST}"


def test_projects_are_read_one_by_one_and_names_come_from_the_index(tmp_path):
    write(tmp_path, [meta(), said("user", "A")])
    write(tmp_path, [meta(SECOND, cwd="/home/ana/other"), said("user", "B")], SECOND)
    (tmp_path / "session_index.jsonl").write_text(json.dumps({"id": SECOND, "thread_name": "Named"}))
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n")
    files = read(tmp_path, "/home/ana/other")
    [document] = [found for file in files for found in file.items if isinstance(found, DocumentRecord)]

    assert [found.title for found in sessions(tmp_path, "/home/ana/other")] == ["Named"]
    assert (document.name, document.is_instructions) == ("AGENTS.md", True)


@pytest.mark.parametrize(("cwd", "name"), [("/home/\nana", "/home/\\u000aana"), ("/" + "x" * 2_000, codex.NO_FOLDER)])
def test_a_project_has_a_name_that_can_be_stored(tmp_path, cwd, name):
    write(tmp_path, [meta(cwd=cwd), said("user", "One")])
    context = f"Current working directory: {cwd}".replace("\n", "\x00") + "\n"
    write(tmp_path, ['{"id": "x", "instructions": "x"}', context], SECOND)

    with Folder(tmp_path) as folder:
        names = [project.name for project in codex.projects(folder)]

    assert names == sorted({name, name.replace("000a", "0000")})
    assert sessions(tmp_path, name)


def test_images_become_placeholders(tmp_path):
    image = {"type": "input_image", "image_url": "data:image/png;base64," + "AAAA" * 100}
    picture = {"id": "ig_1", "result": "AAAA" * 400}
    records = [meta(), item("message", role="user", content=[image]), item("image_generation_call", **picture)]
    found = session(tmp_path, records)

    assert found.entries[0].content == "[image, 300 bytes]"
    assert "AAAA" not in repr(found)


def test_an_appended_rollout_keeps_the_ids_and_hashes_of_its_entries(tmp_path):
    records = [meta(), said("user", "One"), said("assistant", "1"), said("user", "One"), said("assistant", "1")]
    whole = [(entry.source_id, entry.source_hash) for entry in session(tmp_path, records).entries]
    part = [(entry.source_id, entry.source_hash) for entry in session(tmp_path, records[:3]).entries]

    assert whole[:2] == part
    assert len(set(whole)) == 4


@pytest.mark.parametrize("seed", range(40))
def test_damaged_rollouts_never_raise(tmp_path, seed):
    rng = random.Random(seed)
    records: list[Any] = [
        meta(git={"branch": "main"}),
        said("user", "One", id="m" * 30),
        item("reasoning", summary=[{"type": "summary_text", "text": "x"}]),
        item("function_call", name="f", arguments="{}", call_id="c"),
        item("function_call_output", call_id="c", output='{"output":"x","metadata":{"exit_code":1}}'),
        item("custom_tool_call_output", call_id="c", output={"content": "x", "success": False}),
        item("web_search_call", action={"type": "search"}),
        event("token_count", info={"total_token_usage": {"total_tokens": 5}}),
        event("item_completed", item={"type": "UserMessage", "content": [{"type": "text", "text": "x"}]}),
        {"type": "compacted", "payload": {"message": "x", "replacement_history": [said("user", "One")["payload"]]}},
        event("thread_rolled_back", num_turns=1),
    ]
    path = write(tmp_path, [replaced(record, rng) for record in records for _ in range(2)])
    write(tmp_path, [meta(SECOND, forked_from_id=FIRST, forked_from_ordinal_exclusive=9), *records], SECOND)
    path.write_bytes(damaged_bytes(path.read_bytes(), rng))

    assert read(tmp_path)
    json.dumps([entry.extra for found in sessions(tmp_path) for entry in found.entries])


def test_a_rollout_without_a_folder_is_opened_again_only_when_it_changes(tmp_path, monkeypatch):
    path = write(tmp_path, [meta(cwd=None), said("user", "hello")])
    opened: list[str] = []
    read_file = Folder.read

    def counted(self, name, *arguments, **options):
        opened.append(name)
        return read_file(self, name, *arguments, **options)

    monkeypatch.setattr(Folder, "read", counted)
    with Folder(tmp_path) as folder:
        before = [project.name for project in codex.projects(folder) + codex.projects(folder)]
        count = len(opened)
        write(tmp_path, [meta(cwd="/home/ana/atlas"), said("user", "hello there")])
        after = [project.name for project in codex.projects(folder)]

    assert (before, after) == ([codex.NO_FOLDER] * 2, ["/home/ana/atlas"])
    assert opened[:count].count(path.relative_to(tmp_path).as_posix()) == 1
