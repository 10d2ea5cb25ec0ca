"""What an import doesn't take as it is, it reports."""

import json
from pathlib import Path

import pytest

from memoryhub.lib.layouts.hub import MANIFEST
from memoryhub.sync.exporting import export_workspace
from memoryhub.sync.importing import import_workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, raises_code

pytestmark = pytest.mark.django_db
ENTRY = {"id": "a", "type": "message", "role": "user", "content": "hi", "timestamp": "2026-03-01T12:00:00Z"}
EXPORT = {"sessionId": "s", "entries": [ENTRY | {"tokenCount": 3}], "summaries": [], "totalTokens": 3}
KNOWLEDGE = {"id": "k", "category": "learned_fact", "content": "x", "tags": [], "source": ""}
CASES = [
    ("s.json", EXPORT, []),
    ("s.json", EXPORT | {"totalTokens": 400}, ["totalTokens is 400; its entries have 3 tokens"]),
    ("s.json", EXPORT | {"summaries": {"id": "x"}}, ["the summaries are not a list"]),
    ("s.json", EXPORT | {"entries": EXPORT["entries"] * 2, "totalTokens": 6}, ["2 entries have the id a"]),
    ("memory/knowledge.json", {"version": 9, "entries": [KNOWLEDGE]}, ["has the unknown version 9"]),
    ("semantic_graph.json", {"meta": [1], "terms": {}}, ["meta is not an object"]),
]


def problems(folder: Path) -> list[str]:
    return [problem.what for problem in import_workspace(folder, by=By(PERSON, NOW)).tally.problems]


def put(folder: Path, name: str, value: object) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


@pytest.mark.parametrize(("name", "value", "reported"), CASES)
def test_what_does_not_fit_is_reported(tmp_path, name, value, reported):
    found = problems(put(tmp_path / "agent", name, value))

    assert [what for what in reported if not any(what in one for one in found)] == []
    assert bool(found) == bool(reported)


def test_links_in_place_of_memory_folders_are_reported(tmp_path):
    folder = put(tmp_path / "agent", "memory/MEMORY.md", "- a fact\n")
    put(tmp_path / "elsewhere", "x.jsonl", "{}")
    (folder / "sessions").symlink_to(tmp_path / "elsewhere")
    (folder / "memory" / "notes").symlink_to(tmp_path / "elsewhere")

    reported = {
        (problem.file, problem.what) for problem in import_workspace(folder, by=By(PERSON, NOW)).tally.problems
    }

    assert reported == {(path, "is a link; links are not followed") for path in ("sessions", "memory/notes")}


def test_an_export_of_an_unknown_version_is_refused(tmp_path):
    with raises_code("unknown_version", match="version 2"):
        problems(put(tmp_path / "export", MANIFEST, {"format": "memoryhub", "version": 2}))


def test_rows_and_documents_that_an_export_has_too_many_of_are_reported(tmp_path):
    folder = put(tmp_path / "export", MANIFEST, {"format": "memoryhub", "version": 1})
    put(folder, "key-values.jsonl", '{"key": "a", "value": "1"}\n{"key": "a", "value": "2"}\n')
    put(folder, "documents/NOTES.md", "- note\n")

    assert sorted(problems(folder)) == ["has a more than once", "is not a document that MemoryHub knows"]


def test_files_that_no_reader_reads_are_reported_unless_hidden_or_temporary(tmp_path):
    folder = put(tmp_path / "agent", "memory/MEMORY.md", "- a fact\n")
    for name in ("memory/2026-03-01.md", "sessions/notes.txt", "memory/.cursor", "memory/MEMORY.md.tmp", "README.md"):
        put(folder, name, "{}")

    reported = {
        (problem.file, problem.what, problem.outcome)
        for problem in import_workspace(folder, by=By(PERSON, NOW)).tally.problems
    }

    unread = ("is not a file that MemoryHub reads", "ignored")
    assert reported == {("memory/2026-03-01.md", *unread), ("sessions/notes.txt", *unread)}


def test_an_entry_keeps_the_session_that_the_hub_does_not_know(tmp_path):
    line = '{"cursor": 1, "timestamp": "2026-03-01 12:00", "content": "x", "session_key": "cli:gone"}\n'
    folder = put(tmp_path / "agent", "memory/history.jsonl", line)
    workspace = import_workspace(folder, by=By(PERSON, NOW)).workspace

    export_workspace(workspace, tmp_path / "out", by=By(PERSON, NOW))

    assert (tmp_path / "out/workspace/memory/history.jsonl").read_text() == line


def test_one_of_two_entries_that_say_the_same_as_a_known_one_is_reported(tmp_path):
    folder = put(tmp_path / "agent", "memory/knowledge.json", {"version": 1, "entries": [KNOWLEDGE]})
    import_workspace(folder, by=By(PERSON, NOW))
    put(folder, "memory/knowledge.json", {"version": 1, "entries": [KNOWLEDGE | {"id": name} for name in "ab"]})

    assert problems(folder) == ["the entry b says the same as an earlier one"]
