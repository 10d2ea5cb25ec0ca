"""Read Claude Code's transcripts and memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.claude_code import layout as claude_code
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.records import DocumentRecord
from tests.lib.layouts.claude_records import (
    SESSION,
    answer,
    by_id,
    call,
    line,
    marked,
    outline,
    read,
    result,
    session,
    sessions,
    user,
)
from tests.shared import FIXTURES

FIXTURE = FIXTURES / "claude-code"


@pytest.mark.skipif(not FIXTURE.exists(), reason="the shared samples are not here")
def test_the_sample_home_has_three_sessions_of_which_one_is_a_fork_and_a_subagent():
    found = {found.key: found for found in sessions(FIXTURE)}
    parent, fork, single, agent = (
        found[f"claude:{key}"]
        for key in (
            "d0e575a1-bbe2-4164-88f4-4e980b1a61db",
            "0d7165d8-2599-4db2-80b9-024d11118b17",
            "3d695b5f-3594-47e9-885c-e5c3c219114a",
            "d0e575a1-bbe2-4164-88f4-4e980b1a61db/agent-a6bcfe333b2a77ba0",
        )
    )

    assert len(found) == 4
    assert (fork.forked_from, parent.forked_from, single.forked_from) == (parent.key, "", "")
    assert len(by_id(parent).keys() & by_id(fork).keys()) == 16
    assert all(
        by_id(parent)[key].source_hash == by_id(fork)[key].source_hash for key in by_id(parent).keys() & by_id(fork)
    )
    assert (agent.parent_key, agent.parent_call_id) == (parent.key, "toolu_000000000000000000000006")
    assert [entry.extra.get("is_error") for entry in parent.entries if entry.kind == "tool_result"] == [
        None,
        True,
        True,
        None,
    ]
    assert [len(summary.entry_source_ids) for summary in parent.summaries] == [15]
    assert not any(marked(one) for one in found.values())


@pytest.mark.skipif(not FIXTURE.exists(), reason="the shared samples are not here")
def test_the_sample_home_is_detected_with_its_project_and_memory():
    with Folder(FIXTURE / ".claude") as folder:
        detected = detect(folder)
        [project] = claude_code.projects(folder)
        documents = [item for file in claude_code.read(folder, detected) for item in file.items]
    names = [item.name for item in documents if isinstance(item, DocumentRecord)]

    assert detected.layout == "claude-code"
    assert (project.name, project.label, project.path) == ("-home-ana-atlas", "atlas", "/home/ana/atlas")
    assert project.session_count == 3
    assert names == ["MEMORY.md", "memory/pool-limit.md"]


def test_an_answer_of_several_records_is_one_entry_with_private_reasoning(tmp_path):
    found = session(
        tmp_path,
        [
            user("u1", None, "List the files"),
            answer("a1", "u1", {"type": "thinking", "thinking": "plan", "signature": "c2ln"}, message="m1"),
            answer("a2", "a1", "I look.", message="m1", about={"usage": {"output_tokens": 7}}),
            answer("a3", "a2", call("1", command="ls"), message="m1", about={"usage": {"output_tokens": 9}}),
            result("r1", "a3", "1", "a.txt", part={"is_error": True}),
            answer("a4", "r1", "One file.", message="m2"),
        ],
    )
    entry = found.entries[1]

    assert outline(found) == [
        ("u1", "message", "List the files"),
        ("a1", "tool_call", "I look."),
        ("r1", "tool_result", "a.txt"),
        ("a4", "message", "One file."),
    ]
    assert entry.tool_calls[0]["function"] == {"name": "Bash", "arguments": '{"command": "ls"}'}
    assert (entry.extra["thinking"], entry.extra["usage"]) == (["plan"], {"output_tokens": 9})
    assert (found.entries[2].tool_call_id, found.entries[2].extra["is_error"]) == ("call_1", True)
    assert "c2ln" not in json.dumps(entry.extra)


def test_parallel_calls_and_their_results_stay_in_the_context(tmp_path):
    found = session(
        tmp_path,
        [
            user("u1", None, "Both"),
            answer("a1", "u1", call("1"), message="m1"),
            answer("a2", "a1", call("2"), message="m1"),
            result("r1", "a1", "1", sourceToolAssistantUUID="a1"),
            result("r2", "a2", "2", sourceToolAssistantUUID="a2"),
            answer("a3", "r1", "Done", message="m2"),
        ],
    )

    assert [call["id"] for call in found.entries[1].tool_calls] == ["call_1", "call_2"]
    assert marked(found) == []


def test_a_part_after_a_result_joins_its_answer_if_the_request_is_the_same(tmp_path):
    def records(**fields: str) -> list[Any]:
        return [
            user("u1", None, "Both"),
            answer("a1", "u1", call("1"), message="m1", **fields),
            result("r1", "a1", "1"),
            answer("a2", "r1", call("2"), message="m1", **fields),
        ]

    assert len(session(tmp_path, records(requestId="req_1")).entries) == 3
    assert len(session(tmp_path, records()).entries) == 4


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("<command-name>/compact</command-name>", {}),
        ("<system-reminder>x</system-reminder>", {}),
        ("[Request interrupted by user]", {}),
        ("Caveat", {"isMeta": True}),
    ],
)
def test_what_the_program_says_as_the_user_is_injected(tmp_path, text, fields):
    found = session(tmp_path, [user("u1", None, text, **fields), user("u2", "u1", "Hello")])

    assert [(entry.kind, entry.is_injected) for entry in found.entries] == [("context", True), ("message", False)]
    assert found.title == "Hello"


def test_synthetic_answers_attachments_and_notices_are_injected_without_bodies(tmp_path):
    found = session(
        tmp_path,
        [
            user("u1", None, "A"),
            line("attachment", "x1", "u1", attachment={"type": "skill_listing", "content": "long"}),
            answer("a1", "x1", "No response requested.", about={"model": "<synthetic>"}),
            answer("a2", "a1", "API Error", isApiErrorMessage=True),
            line("system", "n1", "a2", subtype="local_command", content="<local-command-stdout>ok"),
        ],
    )

    assert [(entry.content, entry.is_injected) for entry in found.entries[1:]] == [
        ("", True),
        ("No response requested.", True),
        ("API Error", True),
        ("<local-command-stdout>ok", True),
    ]
    assert found.entries[1].extra["attachment"] == {"type": "skill_listing"}


def test_a_prompt_typed_while_the_program_worked_is_a_message(tmp_path):
    queued = {"type": "queued_command", "prompt": "And also this", "commandMode": "prompt"}
    found = session(tmp_path, [user("u1", None, "A"), line("attachment", "x1", "u1", attachment=queued)])

    assert outline(found)[1] == ("x1", "message", "And also this")


def test_data_becomes_a_placeholder_everywhere(tmp_path):
    data = "iVBORw0KGgo" * 200
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    found = session(
        tmp_path,
        [
            user("u1", None, [{"type": "text", "text": "Look"}, image]),
            answer("a1", "u1", call("1")),
            result("r1", "a1", "1", [image], toolUseResult={"type": "image", "file": {"base64": data}}),
        ],
    )

    assert found.entries[0].content == "Look\n[image, 1,650 bytes]"
    assert found.entries[2].content == "[image, 1,650 bytes]"
    assert data not in repr(found)


@pytest.mark.parametrize("has_calls", [True, False])
def test_reasoning_without_text_belongs_to_the_answer_before(tmp_path, has_calls):
    thinking = {"type": "thinking", "thinking": "hm"}
    parts = ["One"] if has_calls else []
    found = session(
        tmp_path, [user("u1", None, "A"), answer("a1", "u1", *parts), answer("a2", "a1", thinking, message="m9")]
    )

    assert len(found.entries) == 1 + has_calls
    assert [entry.extra.get("thinking") for entry in found.entries[1:]] == [["hm"]] * has_calls


def test_titles_come_from_the_person_then_the_model_then_the_first_prompt(tmp_path):
    records: list[Any] = [user("u1", None, "First prompt")]

    assert session(tmp_path, records).title == "First prompt"
    records.append({"type": "ai-title", "aiTitle": "By the model", "sessionId": SESSION})
    assert session(tmp_path, records).title == "By the model"
    records.append({"type": "custom-title", "customTitle": "By Ana", "sessionId": SESSION})
    assert session(tmp_path, records).title == "By Ana"


def test_each_long_text_in_a_repeated_result_is_counted(tmp_path):
    repeated = {"stdout": "x" * 5000, "more": ["y" * 4001, "z" * 4000]}
    turn = [user("u1", None, "A"), answer("a1", "u1", call("1")), result("r1", "a1", "1", toolUseResult=repeated)]
    found = session(tmp_path, turn)

    assert found.entries[2].extra["toolUseResult"] == {
        "stdout": "[text, 5,000 characters]",
        "more": ["[text, 4,001 characters]", "z" * 4000],
    }
    [left_out] = [one.what for file in read(tmp_path) for one in file.problems]
    assert "long text in toolUseResult (2)" in left_out
