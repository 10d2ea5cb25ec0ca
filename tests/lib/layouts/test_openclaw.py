"""OpenClaw's sessions and workspaces, in its store and in older files."""

import json
import sqlite3
from contextlib import closing

import pytest

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts import zstd
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.openclaw import layout as openclaw
from memoryhub.lib.layouts.records import DocumentRecord, SessionRecord
from tests.lib.layouts.openclaw_home import STORE, make_files, make_home, message, read, session_of, whats
from tests.shared import FIXTURES

HOME = FIXTURES / "openclaw" / ".openclaw"


@pytest.mark.skipif(not HOME.exists(), reason="the shared samples aren't next to the clone")
def test_sample_has_one_session_with_two_texts_and_three_tool_calls():
    reads = read(HOME)
    sessions = [item for found in reads.values() for item in found.items if isinstance(item, SessionRecord)]
    documents = [item for found in reads.values() for item in found.items if isinstance(item, DocumentRecord)]

    assert [session.key for session in sessions] == ["agent:main:main"]
    entries = sessions[0].entries
    assert [entry.role for entry in entries].count("user") == 2
    calls = [call["function"]["name"] for entry in entries for call in entry.tool_calls]
    assert calls == ["exec", "write", "write"]
    assert [entry.tool_call_id for entry in entries if entry.kind == "tool_result"] == [
        "call_8",
        "call_10",
        "call_11",
    ]
    assert not any(entry.is_rewound or entry.is_injected for entry in entries)
    names = {document.name: document for document in documents}
    assert set(names) == {
        *("MEMORY.md", "USER.md", "SOUL.md", "IDENTITY.md", "AGENTS.md", "BOOTSTRAP.md", "memory/2026-11-22.md")
    }
    assert names["memory/2026-11-22.md"].content.endswith("- Ana deploys to eu-west-1.\n")
    assert names["AGENTS.md"].is_instructions
    assert all(problem.outcome == "ignored" for found in reads.values() for problem in found.problems)
    with Folder(HOME) as folder:
        [project] = openclaw.projects(folder)
    assert (project.name, project.path, project.session_count) == ("main", "workspace", 1)


@pytest.mark.skipif(not HOME.exists(), reason="the shared samples aren't next to the clone")
def test_workspace_alone_is_read_too():
    assert set(read(HOME / "workspace")) >= {"MEMORY.md", "memory/2026-11-22.md"}


def test_unchanged_sessions_and_stores_are_skipped(tmp_path):
    make_home(tmp_path, [message("a", None, "user", "hello")])
    make_home(tmp_path, [message("b", None, "user", "hi")], session="s2")
    known = {path: found.info.stamp for path, found in read(tmp_path).items()}

    assert all(found.is_skipped for found in read(tmp_path, known).values())
    assert set(read(tmp_path, known)) == set(known)

    with closing(sqlite3.connect(tmp_path / STORE)) as store, store:
        store.execute(
            "INSERT INTO transcript_events VALUES ('s2', 1, ?, 0, NULL)", [json.dumps(message("c", "b", "user", "x"))]
        )
    again = read(tmp_path, known)
    assert {path: found.is_skipped for path, found in again.items()} == {
        f"{STORE}#s1": True,
        f"{STORE}#s2": False,
        STORE: False,
    }


def test_windows_of_a_conversation_come_in_order_with_what_they_belong_to(tmp_path):
    make_home(tmp_path, [message("b", None, "user", "2")], session="new", previous_session_id="old", created_at=1)
    make_home(tmp_path, [message("a", None, "user", "1")], session="old", created_at=5, reason="initial")
    with closing(sqlite3.connect(tmp_path / STORE)) as store, store:
        store.execute(
            "INSERT INTO session_nodes VALUES ('agent:main:main', 'Ana', 'agent:main:boss', 'agent:main:was')"
        )
    found = [item for one in read(tmp_path).values() for item in one.items]

    assert [(item.key, item.extra["session_id"]) for item in found] == [
        ("agent:main:main", "old"),
        ("agent:main:main", "new"),
    ]
    assert {(item.title, item.parent_key, item.forked_from) for item in found} == {
        ("Ana", "agent:main:boss", "agent:main:was")
    }
    assert all(item.is_by_id for item in found)
    assert [item.epoch for item in found] == [0, 1]


def test_newer_schemas_and_archives_are_noted(tmp_path):
    make_home(tmp_path, [message("a", None, "user", "hi")])
    with closing(sqlite3.connect(tmp_path / STORE)) as store, store:
        store.execute("INSERT INTO schema_meta VALUES ('primary', 99)")
        store.execute("CREATE TABLE session_transcript_archives (session_id TEXT)")
        store.execute("INSERT INTO session_transcript_archives VALUES ('gone')")
        store.execute("DROP TABLE session_transcript_active_events")
    found = read(tmp_path)

    assert whats(found[STORE]) == [
        "has the schema 99; MemoryHub knows 23",
        "has 1 session that was deleted or reset by OpenClaw",
    ]
    assert len(found[f"{STORE}#s1"].items) == 1


def test_foreign_store_is_rejected_and_its_sessions_are_not_missing(tmp_path):
    make_home(tmp_path, [message("a", None, "user", "hi")])
    known = {path: found.info.stamp for path, found in read(tmp_path).items()}
    (tmp_path / STORE).write_bytes(b"not a database at all")

    found = read(tmp_path, known)

    assert found[f"{STORE}#s1"].is_skipped
    assert found[STORE].problems[0].outcome == "rejected"
    assert found[STORE].problems[0].what.startswith("is not an SQLite database")


def test_compressed_records_need_a_module(tmp_path, monkeypatch):
    make_home(tmp_path, [message("a", None, "user", "hi")])
    with closing(sqlite3.connect(tmp_path / STORE)) as store, store:
        store.execute("INSERT INTO transcript_events VALUES ('s1', 1, NULL, 0, x'28b52ffd')")
    monkeypatch.setattr(zstd, "MODULES", ())
    assert whats(read(tmp_path)[f"{STORE}#s1"]) == [
        "a compressed record, which needs Python 3.14 or backports.zstd (record 1)"
    ]

    unpacked = json.dumps(message("b", "a", "user", "unpacked")).encode()
    monkeypatch.setattr("memoryhub.lib.layouts.openclaw.store.decompress", lambda data, limit: unpacked)
    assert [one.content for one in session_of(tmp_path).entries] == ["hi", "unpacked"]


def test_older_files_have_their_key_in_the_index(tmp_path):
    header = {"type": "session", "version": 3, "id": "one", "timestamp": "2026-02-01T10:00:00Z", "cwd": "/home/ana"}
    index = json.dumps(
        {"agent:main:telegram:1": {"sessionId": "one", "updatedAt": 1770000000000, "displayName": "Ana"}}
    )
    make_files(
        tmp_path,
        one__jsonl=[header, message("a", None, "user", "hi"), '{"type": "mess'],
        two__jsonl__reset__2026=[message("b", None, "user", "before")],
        sessions__json=[index],
    )
    (tmp_path / "agents/main/sessions/three.jsonl.deleted.1.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    found = read(tmp_path)

    [one] = found["agents/main/sessions/one.jsonl"].items
    assert (one.key, one.title, one.extra["cwd"]) == ("agent:main:telegram:1", "Ana", "/home/ana")
    assert [problem.outcome for problem in found["agents/main/sessions/one.jsonl"].problems] == ["noted"]
    [two] = found["agents/main/sessions/two.jsonl.reset.2026"].items
    assert two.key == "agent:main:session:two"
    assert "compressed" in whats(found["agents/main/sessions/three.jsonl.deleted.1.zst"])[0]
    with Folder(tmp_path) as folder:
        [project] = openclaw.projects(folder)
    assert project.session_count == 3


def test_store_wins_over_the_file_of_the_same_session(tmp_path):
    make_home(tmp_path, [message("a", None, "user", "stored")])
    make_files(tmp_path, s1__jsonl=[message("a", None, "user", "in the file")])
    found = read(tmp_path)

    assert [one.content for one in session_of(tmp_path).entries] == ["stored"]
    assert whats(found["agents/main/sessions/s1.jsonl"]) == ["is also in the agent's SQLite store"]


def test_agents_of_a_home_have_workspaces_of_their_own(tmp_path):
    make_home(tmp_path, [message("a", None, "user", "hi")])
    for name in ("workspace", "workspace-coder"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "MEMORY.md").write_text(f"- {name}\n")
    folder = tmp_path / "agents" / "coder" / "sessions"
    folder.mkdir(parents=True)
    (folder / "x.jsonl").write_text(json.dumps(message("b", None, "user", "hi")))

    with Folder(tmp_path) as opened:
        assert [(one.name, one.path) for one in openclaw.projects(opened)] == [
            ("coder", "workspace-coder"),
            ("main", "workspace"),
        ]


@pytest.mark.parametrize(
    ("names", "layout"),
    [
        (("AGENTS.md", "SOUL.md", "IDENTITY.md", "memory/2026-11-22.md"), "openclaw"),
        (("AGENTS.md", "SOUL.md", "HEARTBEAT.md", "MEMORY.md"), "openclaw"),
        (("AGENTS.md", "SOUL.md", "HEARTBEAT.md", "memory/MEMORY.md"), "nanobot"),
        (("AGENTS.md", "SOUL.md", "BOOTSTRAP.md", "memory/history.jsonl"), "nanobot"),
    ],
)
def test_workspaces_of_openclaw_and_nanobot_are_told_apart(tmp_path, names, layout):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")

    with Folder(tmp_path) as folder:
        assert detect(folder).layout == layout
