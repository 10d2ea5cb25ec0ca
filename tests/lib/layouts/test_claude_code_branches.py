"""Read Claude Code's branches, compactions, forks and damaged transcripts."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.claude_code import forks
from memoryhub.lib.layouts.records import SessionRecord
from tests.lib.layouts.claude_records import (
    OTHER,
    SESSION,
    answer,
    call,
    line,
    marked,
    read,
    result,
    session,
    sessions,
    user,
    write,
)
from tests.lib.layouts.random_json import damaged_bytes, replaced


def test_rewound_messages_are_kept_and_marked(tmp_path):
    found = session(
        tmp_path,
        [
            user("u1", None, "First"),
            answer("a1", "u1", "One"),
            user("u2", "a1", "Wrong turn"),
            answer("a2", "u2", call("1")),
            result("r2", "a2", "1"),
            line("attachment", "x2", "r2", attachment={"type": "todo"}),
            user("u3", "a1", "Right turn"),
            answer("a3", "u3", "Three"),
            line("attachment", "x3", "a3", attachment={"type": "todo"}),
        ],
    )

    assert marked(found) == ["u2", "a2", "r2", "x2"]


def test_a_missing_parent_does_not_cut_the_conversation(tmp_path):
    found = session(tmp_path, [user("u1", None, "A"), answer("a1", "gone", "B"), user("u2", "a1", "C")])

    assert marked(found) == []


def test_a_compaction_folds_what_came_before_except_what_it_preserved(tmp_path):
    boundary = line(
        "system",
        "b1",
        None,
        logicalParentUuid="a2",
        subtype="compact_boundary",
        content="Conversation compacted",
        compactMetadata={"preTokens": 90, "preservedSegment": {"headUuid": "u2", "tailUuid": "a2"}},
    )
    found = session(
        tmp_path,
        [
            user("u0", None, "Left branch"),
            user("u1", None, "A"),
            answer("a1", "u1", "B"),
            user("u2", "a1", "C"),
            answer("a2", "u2", "D"),
            boundary,
            user("s1", "b1", "What happened so far", isCompactSummary=True),
            user("u3", "s1", "E"),
            answer("a3", "u3", "F"),
            line("system", "b2", None, logicalParentUuid="a3", subtype="compact_boundary", compactMetadata={}),
            user("s2", "b2", "Later", isCompactSummary=True),
            user("u4", "s2", "G"),
        ],
    )
    first, second = found.summaries

    assert {entry.source_id: entry.summary_source_id for entry in found.entries} == {
        "u0": "",
        "u1": "b1",
        "a1": "b1",
        "u2": "b2",
        "a2": "b2",
        "u3": "b2",
        "a3": "b2",
        "u4": "",
    }
    assert (first.content, first.original_token_count) == ("What happened so far", 90)
    assert (first.entry_source_ids, first.extra["parentId"]) == (["u1", "a1"], "b2")
    assert second.entry_source_ids == ["u2", "a2", "u3", "a3"]
    assert marked(found) == ["u0"]


def test_a_summary_on_a_branch_that_was_left_folds_nothing(tmp_path):
    found = session(
        tmp_path,
        [
            user("u1", None, "A"),
            line("system", "b1", None, logicalParentUuid="u1", subtype="compact_boundary"),
            user("s1", "b1", "Sum", isCompactSummary=True),
            user("u2", "u1", "B"),
        ],
    )

    assert found.summaries == []
    assert [entry.summary_source_id for entry in found.entries] == ["", ""]


def test_a_fork_names_the_session_that_went_on_afterwards(tmp_path):
    """The fork's own first line is later than the records that it repeats."""
    shared = [user("u1", None, "A", at=0), answer("a1", "u1", "B", at=1)]
    opened = {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION}
    write(
        tmp_path, [opened | {"timestamp": "2026-11-22T09:59:00Z"}, *shared, user("u2", "a1", "Original", at=9)], OTHER
    )
    write(
        tmp_path, [opened | {"timestamp": "2026-11-22T10:05:00Z"}, *shared, user("u3", "a1", "Fork", at=5)], SESSION
    )

    assert [(found.key, found.forked_from) for found in sessions(tmp_path)] == [
        (f"claude:{OTHER}", ""),
        (f"claude:{SESSION}", f"claude:{OTHER}"),
    ]


def test_a_fork_after_a_compaction_names_its_session(tmp_path):
    boundary = line("system", "b1", None, at=5, logicalParentUuid="u1", subtype="compact_boundary")
    kept = [boundary, user("s1", "b1", "Sum", at=5, isCompactSummary=True)]
    write(tmp_path, [user("u1", None, "A"), *kept, user("u2", "s1", "B", at=9)], OTHER)
    write(
        tmp_path,
        [{"type": "mode", "timestamp": "2026-11-22T10:30:00Z"}, *kept, user("u3", "s1", "C", at=31)],
        SESSION,
    )
    original, fork = sessions(tmp_path)

    assert (original.forked_from, fork.forked_from) == ("", f"claude:{OTHER}")
    assert (fork.summaries[0].content, fork.summaries[0].entry_source_ids) == ("Sum", [])


def test_a_copy_with_new_ids_has_those_of_the_session_that_it_was_copied_from(tmp_path):
    origin = {"forkedFrom": {"sessionId": OTHER, "messageUuid": "u1"}}
    found = session(tmp_path, [user("n1", None, "A", **origin), user("n2", "n1", "B")])

    assert [entry.source_id for entry in found.entries] == ["u1", "n2"]
    assert found.forked_from == f"claude:{OTHER}"


def test_subagents_in_the_session_of_older_versions_are_sessions_of_their_own(tmp_path):
    write(
        tmp_path,
        [
            user("u1", None, "Ask somebody"),
            answer("a1", "u1", {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "Count"}}),
            user("s1", None, "Count", isSidechain=True),
            answer("s2", "s1", "Three", isSidechain=True),
            user("r1", "a1", [{"type": "tool_result", "tool_use_id": "t1", "content": "Three"}]),
        ],
    )
    main, agent = sessions(tmp_path)

    assert [entry.source_id for entry in main.entries] == ["u1", "a1", "r1"]
    assert (agent.key, agent.parent_key, agent.parent_call_id) == (f"{main.key}/agent-s1", main.key, "t1")
    assert marked(agent) == marked(main) == []


def test_records_that_only_the_program_uses_and_unknown_ones_are_counted(tmp_path):
    records = [
        user("u1", None, "A"),
        *[{"type": "mode"}] * 3,
        *[{"type": "novelty", "uuid": "n"}] * 2,
        {"type": 5},
        [],
    ]
    write(tmp_path, records)
    [file] = read(tmp_path)

    assert [(problem.what, problem.outcome) for problem in file.problems] == [
        ("has records of unknown types: no type (2), novelty (2) (lines 5, 6, 7, 8)", "rejected"),
        ("has records that only the program uses: mode (3)", "ignored"),
    ]


def test_a_repeated_record_is_read_once(tmp_path):
    write(tmp_path, [user("u1", None, "A"), user("u1", None, "A")])
    [file] = read(tmp_path)
    [found] = file.items

    assert isinstance(found, SessionRecord)
    assert len(found.entries) == 1
    assert file.problems[0].outcome == "noted"


def test_a_line_that_is_being_written_is_left_for_the_next_import(tmp_path):
    path = write(tmp_path, [user("u1", None, "A"), "{damaged", user("u2", "u1", "B")])
    path.write_text(path.read_text() + json.dumps(answer("a1", "u2", "C"))[:60])
    [file] = read(tmp_path)

    assert [(problem.line, problem.outcome) for problem in file.problems] == [(2, "rejected"), (4, "noted")] or [
        (problem.line, problem.outcome) for problem in file.problems
    ] == [(4, "noted"), (2, "rejected")]


def test_an_appended_transcript_keeps_the_ids_and_hashes_of_its_entries(tmp_path):
    records = [
        user("u1", None, "A"),
        answer("a1", "u1", "B", call("1")),
        result("r1", "a1", "1"),
        user("u2", "a1", "C"),
        answer("a2", "u2", "D"),
    ]
    grown = [(entry.source_id, entry.source_hash) for entry in session(tmp_path, records).entries]

    for count in range(1, len(records)):
        found = [(entry.source_id, entry.source_hash) for entry in session(tmp_path, records[:count]).entries]
        assert found == grown[: len(found)]


@pytest.mark.parametrize("seed", range(40))
def test_damaged_transcripts_never_raise(tmp_path, seed):
    rng = random.Random(seed)
    records: list[Any] = [
        user("u1", None, [{"type": "text", "text": "A"}, {"type": "image", "source": {"data": "AAAA"}}]),
        answer("a1", "u1", {"type": "thinking", "thinking": "x"}, "B", call("1", prompt="p")),
        result("r1", "a1", "1", [{"type": "text", "text": "x"}], toolUseResult={"stdout": "x"}),
        line("attachment", "x1", "r1", attachment={"type": "queued_command", "prompt": "p"}),
        line(
            "system",
            "b1",
            None,
            logicalParentUuid="r1",
            subtype="compact_boundary",
            compactMetadata={
                "preservedSegment": {"headUuid": "a1", "tailUuid": "r1"},
                "preservedMessages": {"uuids": []},
            },
        ),
        user("s1", "b1", "Sum", isCompactSummary=True),
        user("u2", "s1", "C", isSidechain=True, forkedFrom={"sessionId": OTHER, "messageUuid": "z"}),
        {"type": "summary", "summary": "T", "leafUuid": "u1"},
    ]
    path = write(tmp_path, [replaced(record, rng) for record in records for _ in range(2)])
    write(tmp_path, records, OTHER)
    path.write_bytes(damaged_bytes(path.read_bytes(), rng))

    files = read(tmp_path)

    assert files
    json.dumps([entry.extra for found in sessions(tmp_path) for entry in found.entries])


def test_only_records_of_summaries_name_sessions(tmp_path):
    records = [
        {"type": kind, "summary": f"By {kind}", "leafUuid": f"leaf-{kind}"}
        for kind in ("custom-title", "summary", "tag")
    ]
    path = write(tmp_path, [*records, user("u1", None, "First")])

    with Folder(tmp_path) as folder:
        assert forks.head(folder, str(path.relative_to(tmp_path))).titles == {"leaf-summary": "By summary"}
