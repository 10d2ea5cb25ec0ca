"""OpenCode's sessions, in its database and in the files of older versions."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.message_parts import MAX_OWN_ID
from memoryhub.lib.layouts.opencode import layout as opencode
from memoryhub.lib.layouts.opencode.forks import find_copies
from memoryhub.lib.layouts.opencode.sessions import unquoted
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.layouts.records import FileRead, SessionRecord
from tests.shared import FIXTURES

HOME = FIXTURES / "opencode" / ".local" / "share" / "opencode"
SCHEMA = """
CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT);
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, revert TEXT,
  time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER,
  data TEXT);
"""
Messages = list[tuple[dict | str, list[dict | str]]]


def make_store(parent: Path, messages: Messages, session: str = "ses_1", **columns) -> None:
    """Create a session whose messages are ``msg_1``, ``msg_2``, …, and their parts ``prt_1_1``, ``prt_1_2``, …"""
    parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(parent / "opencode.db", isolation_level=None)) as store:
        if not store.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            store.executescript(SCHEMA)
        row = {"id": session, "project_id": "global", "directory": "/home/ana/atlas", "title": "", "time_created": 1}
        row |= columns
        store.execute(f"INSERT INTO session ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
        prefix = "" if session == "ses_1" else f"{session}_"
        for number, (value, parts) in enumerate(messages, 1):
            name = f"msg_{prefix}{number}"
            store.execute("INSERT INTO message VALUES (?, ?, 0, 0, ?)", [name, session, as_text(value)])
            for place, part in enumerate(parts, 1):
                values = [f"prt_{prefix}{number}_{place}", name, session, as_text(part)]
                store.execute("INSERT INTO part VALUES (?, ?, ?, 0, 0, ?)", values)


def as_text(value: dict | str) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def user(*parts: dict, **fields) -> tuple[dict, list[dict]]:
    return {"role": "user", "time": {"created": 1795345637545}} | fields, [*parts]


def answer(*parts: dict, **fields) -> tuple[dict, list[dict]]:
    return {"role": "assistant", "time": {"created": 1795345637999}} | fields, [*parts]


def text(words: str, **fields) -> dict:
    return {"type": "text", "text": words} | fields


def tool(status: str, **state) -> dict:
    return {
        "type": "tool",
        "tool": "bash",
        "callID": "call_1",
        "state": {"status": status, "input": {"a": 1}} | state,
    }


def read(parent: Path, known: dict[str, str] | None = None, project: str = "") -> dict[str, FileRead]:
    with Folder(parent) as folder:
        folder.skip_unchanged(known or {})
        detected = detect(folder)
        return {
            item.path: item for item in opencode.read(folder, detected.__class__("opencode", "", project=project))
        }


def session_of(parent: Path, name: str = "ses_1") -> SessionRecord:
    [found] = read(parent)[f"opencode.db#{name}"].items
    assert isinstance(found, SessionRecord)
    return found


@pytest.mark.skipif(not HOME.exists(), reason="the shared samples aren't next to the clone")
@pytest.mark.parametrize("home", [HOME, FIXTURES / "opencode"])
def test_sample_has_a_session_with_a_child_and_three_tool_parts(home):
    with Folder(home) as folder:
        reads = list(read_folder(folder, detect(folder)))
        [project] = opencode.projects(folder)
    parent, child = (item for found in reads for item in found.items)

    assert (project.label, project.path, project.session_count) == ("atlas", "/home/ana/atlas", 2)
    assert (child.parent_key, child.parent_call_id) == (parent.key, "call_5")
    assert not parent.parent_key
    results = [entry for entry in parent.entries if entry.kind == "tool_result"]
    assert [entry.name for entry in results] == ["bash", "read", "task"]
    assert [entry.extra.get("is_error", False) for entry in results] == [False, True, False]
    assert [call["id"] for entry in parent.entries for call in entry.tool_calls] == ["call_2", "call_4", "call_5"]
    assert parent.title.startswith("My name is Ana.")
    assert all(problem.outcome == "ignored" for found in reads for problem in found.problems)


def test_tool_parts_are_a_call_and_its_result(tmp_path):
    image = {"type": "file", "mime": "image/png", "url": "data:image/png;base64," + "QUJD" * 100, "filename": "a.png"}
    made = answer(
        {"type": "reasoning", "text": "secret", "time": {"start": 1}},
        text("Look:"),
        tool("completed", output="done", metadata={"output": "done", "exit": 0}, attachments=[image]),
        tool("error", error="no such file") | {"callID": "call_2"},
        tool("running") | {"callID": "call_3"},
        {"type": "step-finish"},
    )
    make_store(tmp_path, [made])
    entries = session_of(tmp_path).entries

    assert [(one.source_id, one.kind, one.content, one.tool_call_id) for one in entries] == [
        ("msg_1", "tool_call", "Look:", ""),
        ("prt_1_3", "tool_result", "done\n[image, 300 bytes] a.png", "call_1"),
        ("prt_1_4", "tool_result", "no such file", "call_2"),
    ]
    assert [call["id"] for call in entries[0].tool_calls] == ["call_1", "call_2", "call_3"]
    assert entries[0].extra["reasoning"] == [{"text": "secret", "time": {"start": 1}}]
    assert entries[1].extra["metadata"] == {"exit": 0}
    assert entries[2].extra["is_error"] is True
    assert "QUJD" not in json.dumps([one.extra for one in entries])


def test_what_the_program_adds_to_a_prompt_is_injected(tmp_path):
    file = {"type": "file", "mime": "text/plain", "filename": "notes.md", "url": "file:///home/ana/notes.md"}
    make_store(
        tmp_path,
        [user(text("Read it."), text("Called the Read tool", synthetic=True), file, text("x", ignored=True))],
    )

    assert [(one.source_id, one.kind, one.content, one.is_injected) for one in session_of(tmp_path).entries] == [
        ("msg_1", "message", "Read it.\n[file notes.md]", False),
        ("msg_1#1", "context", "Called the Read tool", True),
        ("msg_1#2", "context", "x", True),
    ]


def test_compaction_folds_all_before_it(tmp_path):
    messages = [
        user(text("one")),
        answer(text("two")),
        user({"type": "compaction", "auto": True}),
        answer(text("Sum"), summary=True, modelID="m"),
        user(text("three")),
    ]
    make_store(tmp_path, messages)
    session = session_of(tmp_path)

    assert [(one.content, one.summary_source_id) for one in session.entries] == [
        ("one", "msg_4"),
        ("two", "msg_4"),
        ("three", ""),
    ]
    [summary] = session.summaries
    assert (summary.content, summary.model, summary.entry_source_ids) == ("Sum", "m", ["msg_1", "msg_2"])


@pytest.mark.parametrize(
    ("revert", "undone"),
    [
        ({"messageID": "msg_2"}, ["msg_2", "prt_2_2", "msg_3"]),
        ({"messageID": "msg_2", "partID": "prt_2_2"}, ["prt_2_2", "msg_3"]),
        ("odd", []),
        (None, []),
    ],
)
def test_undone_messages_are_marked(tmp_path, revert, undone):
    messages = [user(text("one")), answer(text("two"), tool("completed", output="x")), user(text("three"))]
    make_store(tmp_path, messages, revert=json.dumps(revert))

    assert [one.source_id for one in session_of(tmp_path).entries if one.is_rewound] == undone


def test_failed_answer_says_why(tmp_path):
    make_store(tmp_path, [user(text("hi")), answer(error={"name": "APIError", "data": {"message": "overloaded"}})])

    entry = session_of(tmp_path).entries[1]
    assert (entry.content, entry.extra["is_error"]) == ("overloaded", True)


def test_what_cannot_be_read_is_reported_by_name(tmp_path):
    messages = [
        user(text("kept"), {"type": "hologram"}, {"type": "hologram"}, summary={"diffs": [{"before": "long"}]}),
        ("{not json", []),
        ("[]", [text("lost")]),
        ({"role": "oracle"}, []),
        ({"role": "user", "time": {"created": "never"}}, [text("late"), "{"]),
    ]
    make_store(tmp_path, messages)
    found = read(tmp_path)["opencode.db#ses_1"]

    assert [problem.what for problem in found.problems] == [
        "a part is not JSON (record prt_5_2)",
        "a message is not JSON (record msg_2)",
        "a message is not an object (record msg_3)",
        "a part of a message that isn't there (record prt_3_1)",
        "a part of the type hologram (2 times, record msg_1)",
        "the changes that a message made to files (record msg_1)",
        "a message of the role oracle (record msg_4)",
        "the timestamp is invalid; its text is kept (record msg_5)",
    ]
    assert [one.content for one in found.items[0].entries] == ["kept", "late"]


def test_projects_are_folders_and_can_be_read_alone(tmp_path):
    make_store(tmp_path, [user(text("a"))])
    make_store(
        tmp_path,
        [user(text("b"))],
        "ses_2",
        project_id="p",
        directory="/home/ana/hub/docs",
        time_updated=1795345637545,
    )
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as store, store:
        store.execute("INSERT INTO project VALUES ('p', '/home/ana/hub'), ('global', '/')")
    with Folder(tmp_path) as folder:
        found = opencode.projects(folder)

    assert [(one.name, one.label, one.session_count) for one in found] == [
        ("/home/ana/atlas", "atlas", 1),
        ("/home/ana/hub", "hub", 1),
    ]
    assert found[1].last_active is not None
    assert set(read(tmp_path, project="/home/ana/hub")) == {"opencode.db#ses_2", "opencode.db"}


def test_only_changed_sessions_are_read_again(tmp_path):
    make_store(tmp_path, [user(text("a"))])
    make_store(tmp_path, [user(text("b"))], "ses_2")
    known = {path: found.info.stamp for path, found in read(tmp_path).items()}
    assert all(found.is_skipped for found in read(tmp_path, known).values())

    with closing(sqlite3.connect(tmp_path / "opencode.db")) as store, store:
        store.execute("UPDATE part SET data = ? WHERE session_id = 'ses_2'", [json.dumps(text("longer"))])
    assert {path: found.is_skipped for path, found in read(tmp_path, known).items()} == {
        "opencode.db#ses_1": True,
        "opencode.db#ses_2": False,
        "opencode.db": False,
    }


def test_another_database_is_rejected(tmp_path):
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as store:
        store.execute("CREATE TABLE session (id)")

    [problem] = read(tmp_path)["opencode.db"].problems
    assert problem.what == "has no table message, so it isn't OpenCode's database, or a newer one"


def make_files(parent: Path, messages: Messages, **session) -> str:
    path = "storage/session/global/ses_1.json"
    value = {"id": "ses_1", "projectID": "global", "directory": "/home/ana/atlas", "title": "Files"} | session
    put(parent / path, value)
    put(parent / "storage/project/global.json", {"id": "global", "worktree": "/"})
    for number, (message, parts) in enumerate(messages, 1):
        put(parent / f"storage/message/ses_1/msg_{number}.json", message)
        for place, part in enumerate(parts, 1):
            put(parent / f"storage/part/msg_{number}/prt_{number}_{place}.json", part)
    return path


def put(path: Path, value: dict | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_text(value))


def test_older_files_are_read_alike(tmp_path):
    messages = [user(text("hi")), answer(tool("completed", output="x")), user(text("cut")), ("{", [])]
    path = make_files(
        tmp_path, messages, parentID="ses_0", revert={"messageID": "msg_3"}, time={"created": 1795345637545}
    )
    found = read(tmp_path)[path]
    [session] = found.items

    assert (session.key, session.title, session.parent_key) == ("opencode:ses_1", "Files", "opencode:ses_0")
    assert [(one.source_id, one.is_rewound) for one in session.entries] == [
        ("msg_1", False),
        ("msg_2", False),
        ("prt_2_1", False),
        ("msg_3", True),
    ]
    assert [problem.what for problem in found.problems] == [
        "the file storage/message/ses_1/msg_4.json is not JSON, or half written"
    ]
    assert read(tmp_path, {path: found.info.stamp})[path].is_skipped
    put(tmp_path / "storage/part/msg_3/prt_3_2.json", text("more"))
    assert not read(tmp_path, {path: found.info.stamp})[path].is_skipped
    with Folder(tmp_path) as folder:
        assert [one.name for one in opencode.projects(folder)] == ["/home/ana/atlas"]


def test_database_wins_over_older_files(tmp_path):
    make_store(tmp_path, [user(text("a"))])
    make_files(tmp_path, [user(text("older"))])
    found = read(tmp_path)

    assert set(found) == {"opencode.db#ses_1", "opencode.db", "storage"}
    assert found["storage"].problems[0].outcome == "ignored"


def test_prompts_of_the_command_line_have_a_title_without_quotes():
    assert unquoted(r'"Say \"hi\""') == 'Say "hi"'
    assert unquoted('"a" and "b"') == '"a" and "b"'


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["data", "url", "message"]), inner),
    max_leaves=6,
)
TYPES = st.sampled_from(["text", "tool", "reasoning", "file", "subtask", "compaction", "odd"])
FIELDS = ["text", "synthetic", "tool", "callID", "state", "mime", "filename", "url", "prompt"]
STATE = ["input", "output", "error", "metadata", "title", "time", "attachments"]
state = st.builds(
    lambda status, fields: {"state": fields | {"status": status}},
    st.sampled_from(["completed", "error", "pending"]),
    st.dictionaries(st.sampled_from(STATE), values),
)
part = st.builds(
    lambda kind, fields, inner: fields | {"type": kind} | inner,
    TYPES,
    st.dictionaries(st.sampled_from(FIELDS), values),
    state | st.just({}),
)
message = st.builds(
    lambda role, fields: fields | {"role": role},
    st.sampled_from(["user", "assistant"]),
    st.dictionaries(st.sampled_from(["time", "summary", "error", "modelID", "path"]), values),
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80)
@given(st.lists(st.tuples(message, st.lists(part, max_size=3)), max_size=3), values)
def test_odd_values_never_raise(tmp_path, messages, odd):
    path = make_files(tmp_path, messages, revert=odd, title=odd, parentID=odd, time=odd, directory=odd, projectID=odd)

    for item in read(tmp_path)[path].items:
        ids = [entry.source_id for entry in item.entries]
        assert len(ids) == len(set(ids))
        json.dumps([entry.extra for entry in item.entries] + [item.extra])


def test_a_fork_repeats_messages_under_the_ids_of_their_originals(tmp_path):
    said = [user(text("hi")), answer(text("Hello."), parentID="msg_1")]
    make_store(tmp_path, said, time_created=1000)
    copied = [user(text("hi")), answer(text("Hello."), parentID="msg_ses_2_1"), user(text("go on"))]
    make_store(tmp_path, copied, "ses_2", time_created=2000, revert=json.dumps({"messageID": "msg_ses_2_3"}))
    with closing(sqlite3.connect(tmp_path / "opencode.db", isolation_level=None)) as store:
        for place, name in ((1100, "1"), (1200, "2")):
            for prefix in ("msg_", "msg_ses_2_"):
                store.execute("UPDATE message SET time_created = ? WHERE id = ?", [place, prefix + name])
        store.execute("UPDATE message SET time_created = 2100 WHERE id = 'msg_ses_2_3'")

    first, fork = session_of(tmp_path), session_of(tmp_path, "ses_2")
    assert fork.entries[:2] == first.entries
    assert [(one.content, one.is_rewound) for one in fork.entries[2:]] == [("go on", True)]
    assert (first.forked_from, fork.forked_from) == ("", "opencode:ses_1")


def test_sessions_whose_ids_are_not_texts_have_no_forks():
    rows = [{"id": name, "session_id": session, "time_created": 5} for name, session in (("a", "s"), ("b", b"s"))]
    store = Mock(rows=Mock(return_value=rows))

    assert find_copies(store, {"s": 9, b"s": 9}).messages == {}


def test_messages_without_a_session_and_bytes_where_text_belongs_are_reported(tmp_path):
    make_store(tmp_path, [user(text("a"))], title=b"caf\xc3\xa9")
    make_store(tmp_path, [user(text("b"))], "s" * (MAX_OWN_ID + 1))
    with closing(sqlite3.connect(tmp_path / "opencode.db", isolation_level=None)) as store:
        store.execute("INSERT INTO message VALUES ('msg_x', 'gone', 0, 0, '{}')")
        store.execute("UPDATE part SET data = CAST(data AS BLOB) WHERE session_id = 'ses_1'")
    found = read(tmp_path)

    [session] = found["opencode.db#ses_1"].items
    assert (session.title, session.entries[0].content) == ("café", "a")
    assert [one.what for one in found["opencode.db#ses_1"].problems] == ["part.data has bytes that aren't text"]
    assert [one.what for one in found["opencode.db"].problems] == [
        "messages of a session that isn't there",
        f"a session has an unusable id: {'s' * 80}…",
        "session.title has bytes that aren't text",
    ]
