"""Sessions of nanobot 0.3: what its program adds to them isn't said by anyone, and its compactions repeat nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from memoryhub.sync.exporting import export_workspace
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Entry, Session, Workspace
from sessions_app.services.audit import By
from tests.hub import PERSON

pytestmark = pytest.mark.django_db
SESSION = "workspace/sessions/cli_direct.jsonl"
SAID = ["Tea is served at four.", "Noted.", "And the biscuits?", "At five."]
MARK = {
    "role": "user",
    "content": "Continue the active task from the working-memory checkpoint above.",
    "_hidden_history": True,
    "timestamp": "2026-08-26T09:00:12.618456",
}


def message(number: int, **more: Any) -> dict[str, Any]:
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": SAID[number], "timestamp": f"2026-08-26T09:00:0{number}.000001"} | more


def write(agent: Path, records: list[dict[str, Any]], *, archived: int = 0) -> None:
    head = {"_type": "metadata", "key": "cli:direct", "metadata": {}, "last_archived": archived}
    path = agent / SESSION
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in [head, *records]))


def take(agent: Path) -> list[str]:
    """Import the agent's folder; return what the report says."""
    tally = import_workspace(agent, by=By(PERSON, timezone.now())).tally
    return [problem.what for problem in tally.problems]


def said() -> list[str]:
    return list(
        Entry.objects.filter(is_injected=False).order_by("epoch", "position").values_list("content", flat=True)
    )


def test_the_mark_of_a_compaction_is_no_message(tmp_path):
    agent = tmp_path / "agent"
    records = [message(0), message(1), MARK, message(2), message(3)]
    write(agent, records, archived=2)

    assert take(agent) == ["has 1 record that marks a compaction"]

    assert said() == SAID
    assert Session.objects.get().last_consolidated == 2
    export_workspace(Workspace.objects.get(), tmp_path / "out", by=By(PERSON, timezone.now()))
    [head, *exported] = map(json.loads, (tmp_path / "out" / "sessions/cli_direct.jsonl").read_text().splitlines())
    assert exported == records
    assert head["last_archived"] == 2


def test_a_compaction_before_a_message_that_was_imported_repeats_nothing(tmp_path):
    write(tmp_path, [message(0), message(1), message(2)])
    take(tmp_path)

    write(tmp_path, [message(0), message(1), MARK, message(2), message(3)], archived=2)
    take(tmp_path)

    assert said() == SAID
    assert Session.objects.get().epoch == 0


@pytest.mark.parametrize(
    "mark",
    [
        {"_hidden_history": {"kind": "subagent_result"}, "injected_event": "subagent_result"},
        {"_automation_turn": {"kind": "cron", "job_id": "j1"}},
        {"_cron_turn": True},
    ],
)
def test_hidden_messages_are_injected_context(tmp_path, mark):
    agent = tmp_path / "agent"
    records = [message(0), message(1), message(2, **mark), message(3)]
    write(agent, records)

    take(agent)

    assert said() == [SAID[0], SAID[1], SAID[3]]
    assert Entry.objects.get(is_injected=True).content == SAID[2]
    export_workspace(Workspace.objects.get(), tmp_path / "out", by=By(PERSON, timezone.now()))
    exported = map(json.loads, (tmp_path / "out" / "sessions/cli_direct.jsonl").read_text().splitlines())
    assert list(exported)[1:] == records


@pytest.mark.parametrize(
    ("content", "mark"),
    [
        (f"{SAID[0]}\n\n[Goal] Serve tea.", {"version": 1, "sources": ["goal"], "suffix": "[Goal] Serve tea."}),
        (
            [{"type": "text", "text": SAID[0]}, {"type": "text", "text": "[Goal] Serve tea."}],
            {"version": 1, "sources": ["goal"], "blocks": [{"type": "text", "text": "[Goal] Serve tea."}]},
        ),
    ],
)
def test_context_that_the_program_appended_to_a_message_is_not_shown(tmp_path, content, mark):
    agent = tmp_path / "agent"
    records = [message(0, content=content, _runtime_context=mark), message(1)]
    write(agent, records)

    take(agent)

    assert said() == SAID[:2]
    export_workspace(Workspace.objects.get(), tmp_path / "out", by=By(PERSON, timezone.now()))
    exported = map(json.loads, (tmp_path / "out" / "sessions/cli_direct.jsonl").read_text().splitlines())
    assert list(exported)[1:] == records


@pytest.mark.parametrize(
    "mark", [True, {"version": 2, "suffix": "four."}, {"version": 1, "suffix": "five."}, {"version": 1}]
)
def test_a_mark_that_does_not_fit_leaves_a_message_as_it_is(tmp_path, mark):
    write(tmp_path, [message(0, _runtime_context=mark), message(1)])

    take(tmp_path)

    assert said() == SAID[:2]


CALL = {"id": "c1", "type": "function", "function": {"name": "write_stdin", "arguments": '{"chars": "y"}'}}
RENAMED = {"id": "c1", "type": "function", "function": {"name": "exec_session", "arguments": '{"input":"y"}'}}


@pytest.mark.parametrize(
    "later",
    [
        {"new_field": {"version": 1}},
        {"tool_calls": [RENAMED]},
        {"timestamp": "2026-08-26T09:00:01.000001+00:00"},
    ],
)
def test_messages_that_a_newer_version_rewrites_are_not_repeated(tmp_path, later):
    old = message(1, tool_calls=[CALL])
    write(tmp_path, [message(0), old, message(2)])
    take(tmp_path)

    write(tmp_path, [message(0), old | later, message(2), message(3)])
    take(tmp_path)

    assert said() == SAID
    assert Session.objects.get().epoch == 0


def test_messages_without_times_that_a_newer_version_rewrites_are_not_repeated(tmp_path):
    """Grip's never have times, and nanobot's may lack them."""
    records = [message(number, timestamp=None) for number in range(4)]
    write(tmp_path, records[:3])
    take(tmp_path)

    write(tmp_path, [record | {"new_field": 1} for record in records])
    take(tmp_path)

    assert said() == SAID
    assert Session.objects.get().epoch == 0


def test_the_same_words_at_another_time_are_another_conversation(tmp_path):
    write(tmp_path, [message(0), message(1)])
    take(tmp_path)

    write(tmp_path, [message(number, timestamp=f"2026-09-0{number + 1}T09:00:00") for number in (0, 1)])
    take(tmp_path)

    assert said() == [*SAID[:2], *SAID[:2]]


def test_the_same_words_without_a_valid_time_are_another_conversation(tmp_path):
    write(tmp_path, [message(0, timestamp="soon"), message(1, timestamp="soon")])
    take(tmp_path)

    write(tmp_path, [message(1, timestamp="later"), message(2, timestamp="later")])
    take(tmp_path)

    assert said() == [*SAID[:2], *SAID[1:3]]


def test_other_calls_at_the_same_time_are_not_lost(tmp_path):
    write(tmp_path, [message(0), message(1, tool_calls=[CALL])])
    take(tmp_path)

    write(tmp_path, [message(0), message(1, tool_calls=[CALL | {"id": "other"}]), message(2)])
    take(tmp_path)

    calls = [call["id"] for entry in Entry.objects.order_by("epoch", "position") for call in entry.tool_calls]
    assert calls == [CALL["id"], "other"]


def test_other_folders_of_a_workspace_are_not_reported(tmp_path):
    agent = tmp_path
    write(agent, [message(0), message(1)])
    for name in (".git/objects/4b/825dc6", ".git/HEAD", "skills/tea/scripts/kettle.py"):
        path = agent / "workspace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("main")
    (agent / "workspace/memory").mkdir()
    (agent / "workspace/memory/MEMORY.md").symlink_to(agent / SESSION)

    reported = take(agent)

    assert reported == ["is a link; links are not followed"]
