"""Hermes's database and memory files. The database has the columns of the program's version 30."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.hermes import layout as hermes
from memoryhub.lib.layouts.hermes.messages import content_of
from memoryhub.lib.layouts.message_parts import MAX_OWN_ID
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.layouts.records import FileRead, SessionRecord

SCHEMA = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, session_key TEXT, title TEXT, model_config TEXT,
  parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, cwd TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
  content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL,
  token_count INTEGER, reasoning TEXT, _compressed_summary INTEGER NOT NULL DEFAULT 0,
  active INTEGER NOT NULL DEFAULT 1,
  compacted INTEGER NOT NULL DEFAULT 0, display_kind TEXT);
"""


def make_home(parent: Path, messages: list[dict], session: str = "s1", **columns) -> None:
    (parent / "memories").mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(parent / "state.db", isolation_level=None)) as store:
        if not store.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            store.executescript(SCHEMA)
        insert(store, "sessions", {"id": session, "source": "cli", "started_at": 1795345637.5} | columns)
        for message in messages:
            insert(store, "messages", {"session_id": session, "timestamp": 1795345640.25} | message)


def insert(store: sqlite3.Connection, table: str, row: dict) -> None:
    store.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()])


def said(content: str, role: str = "user", **columns) -> dict:
    return {"role": role, "content": content} | columns


def read(parent: Path, known: dict[str, str] | None = None, project: str = "") -> dict[str, FileRead]:
    with Folder(parent) as folder:
        folder.skip_unchanged(known or {})
        return {item.path: item for item in read_folder(folder, replace(detect(folder), project=project))}


def sessions(parent: Path) -> dict[str, SessionRecord]:
    return {
        one.extra["id"]: one
        for found in read(parent).values()
        for one in found.items
        if isinstance(one, SessionRecord)
    }


def test_messages_calls_and_results(tmp_path):
    calls = [{"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}]
    messages = [
        said("List the files."),
        said("", "assistant", tool_calls=json.dumps(calls), reasoning="secret"),
        said("README.md", "tool", tool_call_id="call_1", tool_name="terminal", token_count=4),
        said("One file.", "assistant"),
    ]
    make_home(tmp_path, messages, session_key="telegram:1", cwd="/home/ana")
    session = sessions(tmp_path)["s1"]

    assert (session.key, session.title, session.is_by_id) == ("telegram:1", "List the files.", True)
    assert [(one.source_id, one.kind, one.role) for one in session.entries] == [
        ("s1:1", "message", "user"),
        ("s1:2", "tool_call", "assistant"),
        ("s1:3", "tool_result", "tool"),
        ("s1:4", "message", "assistant"),
    ]
    assert session.entries[1].tool_calls == calls
    assert session.entries[1].extra["reasoning"] == [{"reasoning": "secret"}]
    assert (session.entries[2].name, session.entries[2].tool_call_id, session.entries[2].token_count) == (
        *("terminal", "call_1"),
        4,
    )
    assert session.entries[0].occurred_at.timestamp() == 1795345640.25


def test_rewound_folded_and_hidden_messages(tmp_path):
    messages = [
        said("old", active=0, compacted=1),
        said("old answer", "assistant", active=0, compacted=1),
        said("undone", active=0),
        said("Sum", "user", _compressed_summary=1),
        said("Review the conversation above and save what matters."),
        said("scaffolding", display_kind="hidden"),
        said("new"),
    ]
    make_home(tmp_path, messages)
    session = sessions(tmp_path)["s1"]

    assert [(one.content, one.summary_source_id, one.is_rewound, one.is_injected) for one in session.entries] == [
        ("old", "s1:4", False, False),
        ("old answer", "s1:4", False, False),
        ("undone", "", True, False),
        ("Review the conversation above and save what matters.", "", False, True),
        ("scaffolding", "", False, True),
        ("new", "", False, False),
    ]
    assert [(one.content, one.entry_source_ids) for one in session.summaries] == [("Sum", ["s1:1", "s1:2"])]


def test_continued_sessions_are_epochs_and_others_are_linked(tmp_path):
    make_home(tmp_path, [said("a")], "root", session_key="telegram:1", end_reason="compression", started_at=1e9)
    make_home(
        tmp_path,
        [said("Sum", _compressed_summary=1)],
        "next",
        parent_session_id="root",
        end_reason="daily",
        session_key="telegram:1",
        started_at=2e9,
    )
    make_home(tmp_path, [said("c")], "fresh", parent_session_id="next", session_key="telegram:1", started_at=3e9)
    make_home(
        tmp_path,
        [said("d")],
        "branch",
        parent_session_id="root",
        started_at=4e9,
        model_config=json.dumps({"_branched_from": "root"}),
    )
    make_home(tmp_path, [said("e")], "agent", parent_session_id="fresh", started_at=5e9)
    make_home(tmp_path, [said("f")], "orphan", parent_session_id="gone", started_at=6e9)
    found = sessions(tmp_path)

    assert {name: (one.key, one.epoch) for name, one in found.items()} == {
        "root": ("telegram:1", 0),
        "next": ("telegram:1", 1),
        "fresh": ("telegram:1", 2),
        "branch": ("cli:branch", 0),
        "agent": ("cli:agent", 0),
        "orphan": ("cli:orphan", 0),
    }
    assert found["branch"].forked_from == "telegram:1"
    assert found["agent"].parent_key == "telegram:1"
    assert [one.kind for one in found["next"].entries] == ["summary"]


def test_parents_in_a_circle_do_not_matter(tmp_path):
    make_home(tmp_path, [said("a")], "a", parent_session_id="b", end_reason="compression")
    make_home(tmp_path, [said("b")], "b", parent_session_id="a", end_reason="compression")

    assert set(sessions(tmp_path)) == {"a", "b"}


def test_memory_files_have_a_separator_and_a_limit(tmp_path):
    make_home(tmp_path, [])
    (tmp_path / "memories" / "MEMORY.md").write_text("Ana likes tea.\n§\nThe pool has\n60 slots.")
    (tmp_path / "memories" / "MEMORY.md.lock").touch()
    (tmp_path / "SOUL.md").write_text("Be brief.")
    found = read(tmp_path)

    [memory] = found["memories/MEMORY.md"].items
    assert (memory.name, memory.separator, memory.limit.chars) == ("MEMORY.md", "§", 2200)
    [soul] = found["SOUL.md"].items
    assert (soul.separator, soul.limit) == ("", None)
    assert set(found) == {"state.db", "memories/MEMORY.md", "SOUL.md"}


def test_profiles_are_projects(tmp_path):
    make_home(tmp_path / ".hermes", [said("a")])
    make_home(tmp_path / ".hermes" / "profiles" / "work", [said("b")], "s2")
    with Folder(tmp_path) as folder:
        assert [(one.name, one.path, one.session_count) for one in hermes.projects(folder)] == [
            ("default", ".hermes", 1),
            ("work", ".hermes/profiles/work", 1),
        ]

    (tmp_path / ".hermes" / "profiles" / "work" / "SOUL.md").write_text("Be brief.")
    found = read(tmp_path)
    stores = [f"{place}/state.db{part}" for place, part in ((".hermes", "#s1"), (".hermes/profiles/work", "#s2"))]
    assert set(found) >= set(stores)
    [problem] = found[".hermes/profiles/work/SOUL.md"].problems
    assert problem.what == "belongs to another profile"
    assert set(read(tmp_path, project="default")) == {".hermes/state.db#s1", ".hermes/state.db"}
    assert set(read(tmp_path, project="work")) >= {".hermes/profiles/work/state.db#s2"}
    assert detect_layout(tmp_path / ".hermes" / "profiles" / "work") == "hermes"


def detect_layout(path: Path) -> str:
    with Folder(path) as folder:
        return detect(folder).layout


def test_only_changed_sessions_are_read_again(tmp_path):
    make_home(tmp_path, [said("a")])
    make_home(tmp_path, [said("b")], "s2")
    known = {path: found.info.stamp for path, found in read(tmp_path).items()}
    assert all(found.is_skipped for found in read(tmp_path, known).values())

    with closing(sqlite3.connect(tmp_path / "state.db")) as store, store:
        store.execute("UPDATE messages SET active = 0 WHERE session_id = 's2'")
    assert [path for path, found in read(tmp_path, known).items() if not found.is_skipped] == [
        "state.db#s2",
        "state.db",
    ]


def test_what_cannot_be_read_is_reported(tmp_path):
    messages = [
        said("x", "assistant", tool_calls="{not json"),
        said("y", "assistant", tool_calls='[{"id": "call_1"}]'),
        said("z", timestamp=5e246),
        said("w", "oracle"),
    ]
    make_home(tmp_path, messages)
    with closing(sqlite3.connect(tmp_path / "state.db")) as store, store:
        store.execute("INSERT INTO schema_version VALUES (31)")
    found = read(tmp_path)

    assert [problem.what for problem in found["state.db#s1"].problems] == [
        "the tool calls of a message is not JSON (record 1)",
        "a tool call of an unknown format (record 2)",
        "the timestamp is invalid; its text is kept (record 3)",
        "a message of the role oracle (record 4)",
    ]
    assert [problem.what for problem in found["state.db"].problems] == ["has the schema 31; MemoryHub knows 30"]


def test_bytes_where_text_belongs_are_read_and_reported_by_column(tmp_path):
    make_home(tmp_path, [said(b"caf\xc3\xa9"), said(b"\xff\x00", tool_name=b"ls"), said("x")], title=b"caf\xe9")
    with closing(sqlite3.connect(tmp_path / "state.db")) as store, store:
        store.execute("UPDATE messages SET content = CAST(x'61ff' AS TEXT) WHERE content = 'x'")
    found = read(tmp_path)

    [session] = found["state.db#s1"].items
    assert session.title == "caf\\xe9"
    assert [entry.content for entry in session.entries] == ["café", "\\xff\\u0000", "a\\xff"]
    assert [(problem.what, problem.outcome) for problem in found["state.db#s1"].problems] == [
        ("messages.content has bytes that aren't text (3 times)", "repaired"),
        ("messages.tool_name has bytes that aren't text", "repaired"),
    ]
    assert [problem.what for problem in found["state.db"].problems] == [
        "sessions.title has bytes that aren't text",
    ]


def test_what_has_no_field_is_kept_and_what_is_unknown_is_named(tmp_path):
    make_home(tmp_path, [said("a", reasoning=7)], session_key="telegram:1", model_config="{}", started_at="later")
    make_home(tmp_path, [said("b")], "x" * (MAX_OWN_ID + 1))
    with closing(sqlite3.connect(tmp_path / "state.db")) as store, store:
        store.execute("ALTER TABLE sessions ADD COLUMN mood TEXT")
        store.execute("ALTER TABLE messages ADD COLUMN weather TEXT")
        store.execute("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('gone', 'user', 'c', 1)")
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "old.jsonl").write_text("{}\n")
    found = read(tmp_path)

    [session] = found["state.db#s1"].items
    assert [problem.outcome for problem in found["sessions"].problems] == ["ignored"]
    assert session.extra == {
        "id": "s1",
        "source": "cli",
        "session_key": "telegram:1",
        "model_config": "{}",
        "started_at": "later",
    }
    assert [(problem.what, problem.outcome) for problem in found["state.db"].problems] == [
        ("has columns that aren't imported: sessions.mood, messages.weather", "ignored"),
        ("messages of a session that isn't there", "rejected"),
        (f"a session has an unusable id: {'x' * 80}…", "rejected"),
    ]


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (None, ""),
        ("plain", "plain"),
        (
            '[{"type": "text", "text": "a"}, {"type": "image_url", "image_url": "data:image/png;base64,QUJD"}]',
            "a\n[image, 3 bytes]",
        ),
        ('\\u0000json:[{"type": "text", "text": "b"}]', "b"),
        ('[{"name": "a list that was typed"}]', '[{"name": "a list that was typed"}]'),
        ("\\u0000json:{", "\\u0000json:{"),
        (7, "7"),
    ],
)
def test_content_is_text_or_json_of_parts(stored, shown):
    assert content_of(stored) == shown


values = st.none() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=8) | st.binary(max_size=8)
texts = values | st.sampled_from(
    ["[]", "{}", '[{"function": 1}]', '[{"function": {"name": 1}}]', "compression", "s1"]
)
columns = st.sampled_from(["tool_calls", "tool_name", "token_count", "reasoning", "display_kind", "tool_call_id"])
of_session = st.sampled_from(["session_key", "title", "model_config", "parent_session_id", "end_reason", "ended_at"])


@pytest.mark.slow
@pytest.mark.postgres
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.dictionaries(columns, texts), st.dictionaries(of_session, texts), texts)
def test_odd_values_never_raise(tmp_path, message, session, content):
    (tmp_path / "state.db").unlink(missing_ok=True)
    make_home(
        tmp_path,
        [said("a") | message, said("\0json:[1]"), {"role": "assistant", "content": content} | message],
        **session,
    )

    for found in read(tmp_path).values():
        json.dumps([(one.key, one.title, one.extra) for one in found.items])
        json.dumps([entry.extra for one in found.items for entry in one.entries])


def test_messages_that_a_compression_stores_again_are_read_once(tmp_path):
    """As version 0.19 does it: all rows become inactive, and what stays in the context is stored again."""
    old = [said(text, active=0, compacted=1, timestamp=float(at)) for at, text in enumerate("abcd", 1)]
    summary = said("[CONTEXT COMPACTION] they spoke", timestamp=100.0)
    make_home(
        tmp_path, [*old, said("a", timestamp=1.0), summary, said("d", timestamp=100.01), said("b", timestamp=200.0)]
    )

    [found] = read(tmp_path)["state.db#s1"].items
    folded = found.summaries[0].source_id
    shown = [(entry.content, entry.summary_source_id) for entry in found.entries]
    assert shown == [("a", ""), ("b", folded), ("c", folded), ("d", ""), ("b", "")]
