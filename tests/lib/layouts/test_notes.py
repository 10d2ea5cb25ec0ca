"""Readers of basic-memory vaults, of memory banks, and of the tasks of Cline and Roo Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts import cline_tasks
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.layouts.records import DetectedLayout, DocumentRecord, FileRead, SessionRecord
from tests.hub import raises_code
from tests.lib.layouts.test_gemini_cli import values

NOTE = "---\ntitle: Bees\npermalink: notes/bees\n---\n# Bees\n- [fact] Ana keeps bees #hobby\n"
HISTORY = "tasks/1763800000000/api_conversation_history.json"


def write(place: Path, **files: str) -> Path:
    for name, content in files.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return place


def read_all(place: Path) -> tuple[DetectedLayout, dict[str, FileRead]]:
    with Folder(place) as folder:
        detected = detect(folder)
        return detected, {read.path: read for read in read_folder(folder, detected)}


def names(reads: dict[str, FileRead]) -> list[str]:
    return [item.name for read in reads.values() for item in read.items if isinstance(item, DocumentRecord)]


def task(place: Path, *messages: Any) -> SessionRecord:
    write(place, **{HISTORY: json.dumps(messages)})
    [record] = read_all(place)[1][HISTORY].items
    assert isinstance(record, SessionRecord)
    return record


def test_the_notes_of_a_vault_are_documents_under_their_paths(tmp_path):
    write(tmp_path, **{"notes/bees.md": NOTE, "b.md": NOTE, "plain.md": "# Plain", ".obsidian/c.md": "x"})

    detected, reads = read_all(tmp_path)

    assert detected.layout == "basic-memory"
    assert names(reads) == ["b.md", "notes/bees.md", "plain.md"]


@pytest.mark.parametrize("files", [{"a.md": "# A"}, {"a.md": NOTE, "b.md": "# B"}, {"a.md": "permalink: x"}])
def test_a_folder_of_other_notes_is_not_a_vault(tmp_path, files):
    with raises_code("unknown_layout"):
        read_all(write(tmp_path, **files))


@pytest.mark.parametrize("parent", ["memory-bank/", ""])
def test_the_documents_of_a_memory_bank_are_named_without_its_folder(tmp_path, parent):
    files = {f"{parent}{name}": "# X" for name in ("projectbrief.md", "progress.md", "features/search.md")}

    detected, reads = read_all(write(tmp_path, **files))

    assert detected.layout == "memory-bank"
    assert sorted(names(reads)) == ["features/search.md", "progress.md", "projectbrief.md"]


def test_a_task_is_a_session_without_the_editors_state(tmp_path):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 100}}
    record = task(
        tmp_path,
        {
            "role": "user",
            "ts": 1763800000000,
            "content": [
                {"type": "text", "text": "<task>\nFix the pool\n</task>"},
                image,
                {"type": "text", "text": "<environment_details>\n# VSCode</environment_details>"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hush", "signature": "x"},
                {"type": "text", "text": "I'll look."},
                {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True}],
        },
    )

    assert [(entry.kind, entry.role, entry.content) for entry in record.entries] == [
        ("context", "user", "<environment_details>\n# VSCode</environment_details>"),
        ("message", "user", "Fix the pool\n[image, 300 bytes]"),
        ("tool_call", "assistant", "I'll look."),
        ("tool_result", "tool", "no"),
    ]
    assert record.entries[2].extra["thinking"] == [{"thinking": "hush", "signature": "x"}]
    assert record.entries[3].extra == {"is_error": True}
    assert record.key == "cline:1763800000000"
    assert record.title.startswith("Fix the pool")
    assert "QUJD" not in str(record)


def test_results_that_older_versions_send_as_texts_are_results(tmp_path):
    record = task(
        tmp_path, {"role": "user", "content": [{"type": "text", "text": "[read_file for 'a'] Result:\nok"}]}
    )

    assert [(entry.kind, entry.name, entry.content) for entry in record.entries] == [
        ("tool_result", "read_file", "ok")
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_tasks_are_grouped_by_the_folder_that_they_worked_in(tmp_path, encoding):
    text = "<environment_details>\n# Current Working Directory (/home/ana/atlas) Files</environment_details>"
    write(
        tmp_path,
        **{
            "tasks/1/api_conversation_history.json": json.dumps([{"role": "user", "content": text}]),
            "tasks/2/api_conversation_history.json": "[]",
            "tasks/3/api_conversation_history.json": "[]",
            "state/taskHistory.json": json.dumps([{"id": "2", "cwdOnTaskInitialization": "/home/ana/atlas"}]),
        },
    )
    for file in tmp_path.rglob("*.json"):
        file.write_bytes(file.read_text().encode(encoding))

    with Folder(tmp_path) as folder:
        found = cline_tasks.projects(folder)
        chosen = DetectedLayout("memory-bank", "", project="/home/ana/atlas")
        paths = [read.path for read in read_folder(folder, chosen)]

    assert [(project.name, project.session_count) for project in found] == [("/home/ana/atlas", 2), ("tasks", 1)]
    assert [path.split("/")[1] for path in paths] == ["1", "2"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80)
@given(values, values)
def test_values_of_any_type_never_raise(tmp_path, first, second):
    blocks = [
        first,
        {"type": first, "text": second},
        {"type": "tool_use", "id": first, "name": second, "input": first},
        {"type": "tool_result", "tool_use_id": first, "content": second, "is_error": first},
        {"type": "image", "source": second},
    ]
    for role in ("user", "assistant"):
        task(tmp_path, first, {"role": role, "content": blocks, "ts": second}, {"role": role, "content": first})
