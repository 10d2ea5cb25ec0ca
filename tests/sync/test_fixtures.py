"""Workspaces written by the real programs are imported completely."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from knowledge_app.models import (
    CachedResponse,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    MemoryDocument,
    Observation,
    Term,
    TermRelation,
)
from memoryhub.conversations.context import build_context
from memoryhub.integrity import check_memory
from memoryhub.lib.vectors import unpack
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Entry, Session
from sessions_app.services.audit import Actor, By
from tests.shared import FIXTURES

NAMES = ["nanobot-0.1", "nanobot-current", "grip", "grid"]
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not FIXTURES.exists(), reason="the fixtures aren't beside the clone"),
]


def take(name: str):
    return import_workspace(FIXTURES / name, by=By(Actor("command", "test"), datetime(2026, 11, 21, tzinfo=UTC)))


def readable_messages(file: Path) -> list[dict[str, Any]]:
    """Return the messages of a session file without marks of compactions, read without the product's code."""
    records = []
    for line in file.read_bytes().split(b"\n"):
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return [record for record in records if "role" in record and record.get("_hidden_history") is not True]


def history_for_the_model(messages: list[dict[str, Any]], pointer: int) -> list[dict[str, Any]]:
    """Return the history for the model as in formats.md section 1, without the product's code."""
    window = messages[pointer:][-500:]
    users = [i for i, message in enumerate(window) if message["role"] == "user"]
    window = window[users[0] :] if users else window
    while True:
        keep = []
        for i, message in enumerate(window):
            before = {call["id"] for other in window[:i] for call in other.get("tool_calls") or []}
            after = {other.get("tool_call_id") for other in window[i + 1 :] if other["role"] == "tool"}
            if message["role"] == "tool" and message.get("tool_call_id") not in before:
                continue
            if any(call["id"] not in after for call in message.get("tool_calls") or []):
                continue
            keep.append(message)
        if len(keep) == len(window):
            break
        window = keep
    names = ("tool_calls", "tool_call_id", "name")
    return [
        {"role": message["role"], "content": message.get("content") or ""}
        | {k: message[k] for k in names if k in message}
        for message in window
    ]


def check_documents(name: str) -> None:
    documents = MemoryDocument.objects.select_related("head")
    assert documents
    for document in documents:
        file = next((FIXTURES / name / "workspace").rglob(document.name))
        assert document.head.content == file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nanobot-0.1", "nanobot-current"])
def test_sessions_messages_contexts_and_documents_equal_the_files(name):
    workspace = take(name).workspace
    check_documents(name)
    sources = workspace.source_files.filter(kind="session").select_related("session")

    assert sources.count() == len(list((FIXTURES / name).rglob("*.jsonl"))) - (name == "nanobot-current")
    for source in sources:
        messages = readable_messages(FIXTURES / name / source.path)
        entries = Entry.objects.filter(session=source.session, epoch=source.epoch).order_by("position")
        assert [entry.role for entry in entries] == [message["role"] for message in messages]
        if source.epoch == source.session.epoch:
            context = [part.message for part in build_context(source.session).parts if part.source == "entry"]
            assert context == history_for_the_model(messages, source.session.last_consolidated), source.path


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_second_import_adds_and_changes_nothing(name):
    take(name)

    again = take(name).tally

    assert (+again.added, +again.updated) == ({}, {})
    assert check_memory().broken == []


@pytest.mark.slow
def test_what_is_special_in_the_files_of_nanobot_is_read_or_reported():
    """One test, because the import takes most of a second."""
    problems = {problem.file.rpartition("/")[2]: problem for problem in take("nanobot-0.1").tally.problems}

    assert problems.keys() == {"qq_B7A1C9.jsonl"}
    assert (problems["qq_B7A1C9.jsonl"].line, problems["qq_B7A1C9.jsonl"].outcome) == (5, "rejected")
    discord = build_context(Session.objects.get(key="discord:1124455667788990011"))
    assert "a tool call without all its results" in [drop.why for drop in discord.dropped]

    # The pointer in a group of tools leaves no orphan.
    session = Session.objects.get(key="cli:direct")
    context = build_context(session)

    assert session.last_consolidated == 22
    assert [message["role"] for message in context.messages] == ["user", "assistant"]
    assert [drop.why for drop in context.dropped] == ["a tool result without its call"]


@pytest.mark.slow
def test_the_upgrade_keeps_both_files_of_a_key_and_an_interrupted_turn():
    take("nanobot-current")

    session = Session.objects.get(key="telegram:482913377")

    assert (session.epoch, session.is_visible_to_agent) == (1, True)
    assert Entry.objects.filter(session=session, epoch=0).count() == 59
    assert "Nomad" in session.summary_text
    assert Session.objects.filter(is_visible_to_agent=False).count() == 9

    checkpoint = Session.objects.get(key="cli:direct").extra["checkpoint"]
    assert checkpoint["checkpoint"]["phase"] == "tools_completed"


def test_the_journal_continues_the_log_it_came_from(tmp_path):
    """An upgraded workspace at the same path creates no duplicates."""
    for step, name in enumerate(["nanobot-0.1", "nanobot-current"]):
        folder = tmp_path / "agent" / "workspace" / "memory"
        folder.mkdir(parents=True, exist_ok=True)
        for file in (FIXTURES / name / "workspace" / "memory").iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        if step:
            (folder / "HISTORY.md").unlink()
        import_workspace(
            tmp_path / "agent", by=By(Actor("command", "test"), datetime(2026, 11, 21, 0, step, tzinfo=UTC))
        )

    assert HistoryEntry.objects.count() == 12


@pytest.mark.slow
def test_an_upgrade_in_place_creates_no_duplicates(tmp_path):
    """The same folder, first as left by 0.1, then by 0.3: old sessions moved, new ones next to them."""
    folder = tmp_path / "agent"
    for step, name in enumerate(["nanobot-0.1", "nanobot-current"]):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(FIXTURES / name, folder)
        import_workspace(folder, by=By(Actor("command", "test"), datetime(2026, 11, 21, 0, step, tzinfo=UTC)))

    session = Session.objects.get(key="telegram:482913377")
    assert Entry.objects.count() == 226  # and five marks of compactions
    assert [Entry.objects.filter(session=session, epoch=epoch).count() for epoch in (0, 1)] == [59, 21]
    assert not Session.objects.get(key="heartbeat").is_visible_to_agent
    assert MemoryDocument.objects.get(name="MEMORY.md").head.number == 2
    assert check_memory().broken == []


def test_grip_is_imported_completely():
    tally = take("grip").tally
    check_documents("grip")

    knowledge = json.loads((FIXTURES / "grip/workspace/memory/knowledge.json").read_text())["entries"]
    cache = json.loads((FIXTURES / "grip/workspace/state/semantic_cache.json").read_text())
    assert set(KnowledgeEntry.objects.values_list("content_id", flat=True)) == {row["id"] for row in knowledge}
    assert CachedResponse.objects.count() == len(cache)
    assert HistoryEntry.objects.count() == 62
    archive = next((FIXTURES / "grip/workspace/memory").glob("HISTORY.archive.*")).read_text()
    assert HistoryEntry.objects.filter(is_archived=True).count() == archive.count("\n[2026")
    assert HistoryEntry.objects.filter(content__contains="\n").exists()
    assert sorted((p.file.rpartition("/")[2], p.outcome) for p in tally.problems) == [
        ("telegram_77120045.tmp", "ignored"),
        ("whatsapp_447700900123_s.whatsapp.net.json", "rejected"),
    ]
    assert Session.objects.get(key="telegram:482913377").summary_text.startswith("[Previous conversation context]")


def test_grid_is_imported_completely():
    tally = take("grid").tally

    values = json.loads((FIXTURES / "grid/kv.json").read_text())
    graph = json.loads((FIXTURES / "grid/semantic_graph.json").read_text())["terms"]
    export = json.loads((FIXTURES / "grid/observations-export.json").read_text())
    assert dict(KeyValue.objects.values_list("key", "value")) == values
    assert {row.text: unpack(bytes(row.embedding)) for row in Term.objects.all()} == {
        text: term["embedding"] for text, term in graph.items()
    }
    assert TermRelation.objects.count() == sum(len(term["related"] or []) for term in graph.values())
    assert set(Observation.objects.values_list("uid", "content", "source")) == {
        (row["id"], row["content"], row["source"]) for row in export
    }
    assert [problem.outcome for problem in tally.problems] == ["ignored"]
