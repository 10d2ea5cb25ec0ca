from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.documents import document_bytes, parse_document, split_history
from memoryhub.lib.layouts.records import DetectedLayout
from tests.hub import raises_code


def look(place: Path, wanted: str = "auto", **files: str) -> DetectedLayout:
    place.mkdir(exist_ok=True)
    for name, content in files.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    with Folder(place) as folder:
        return detect(folder, wanted)


@pytest.mark.parametrize(
    ("name", "content", "layout", "version"),
    [
        ("sessions/a.jsonl", "", "nanobot", "0.1"),
        ("memory/MEMORY.md", "", "nanobot", "0.1"),
        ("memory/HISTORY.md", "", "nanobot", "0.1"),
        ("memory/history.jsonl", "", "nanobot", "0.3"),
        (".nanobot/workspace-id", "", "nanobot", "0.3"),
        ("memory/knowledge.json", "{}", "grip", "1"),
        ("state/semantic_cache.json", "{}", "grip", "1"),
        ("sessions/a.json", '{"messages": []}', "grip", "1"),
        ("kv.json", "{}", "grid", ""),
        ("semantic_graph.json", "{}", "grid", ""),
        ("a.json", '{"entries": [], "sessionId": "s"}', "agterm", ""),
    ],
)
def test_a_layout_is_detected_from_one_file(tmp_path, name, content, layout, version):
    found = look(tmp_path, **{name: content})

    assert (found.layout, found.version) == (layout, version)


ENTITY = '{"type":"entity","name":"Ana","entityType":"person","observations":["tea"]}\n'
TRANSCRIPT = '{"type":"user","uuid":"a","sessionId":"s","message":{"role":"user","content":"tea"}}\n'
ROLLOUT = '{"type":"session_meta","payload":{"id":"s","cwd":"/home/ana/atlas"}}\n'


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("name", "content", "only", "layout"),
    [
        ("memory.jsonl", ENTITY, "", "server-memory"),
        ("x.jsonl", ENTITY, "x.jsonl", "server-memory"),
        ("x.jsonl", TRANSCRIPT, "x.jsonl", "claude-code"),
        ("x.jsonl", ROLLOUT, "x.jsonl", "codex"),
        ("a.json", '{"entries": [], "sessionId": "s"}', "", "agterm"),
        ("sessions/a.json", '{"messages": []}', "", "grip"),
        ("note.md", "---\npermalink: note\n---\n", "", "basic-memory"),
        ("list.txt", "=== Findings (1) ===\n", "", "grid"),
        ("memoryhub.json", '{"format": "memoryhub", "version": 1}', "", "hub"),
    ],
)
def test_files_of_utf_16_are_recognised(tmp_path, name, content, only, layout, encoding):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(f"\ufeff{content}".encode(encoding))

    with Folder(tmp_path) as folder:
        assert detect(folder, only=only).layout == layout


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_settings_are_read_whatever_their_encoding(tmp_path, encoding):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "MEMORY.md").touch()
    config = {"agents": {"defaults": {"memoryWindow": 30}}}
    (tmp_path / "config.json").write_bytes(f"\ufeff{json.dumps(config)}".encode(encoding))

    with Folder(tmp_path) as folder:
        assert detect(folder).settings == {"memory_window": 30}


@pytest.mark.parametrize("content", ['{"entries": []}', '{"sessionId": "s"}', "[]", "{"])
def test_other_json_is_not_detected(tmp_path, content):
    with raises_code("unknown_layout"):
        look(tmp_path, **{"a.json": content})


@pytest.mark.parametrize("layout", ["nanobot", "grip", "grid", "agterm"])
def test_a_named_layout_is_assumed(tmp_path, layout):
    assert look(tmp_path, layout).layout == layout


def test_the_workspace_of_an_agents_home_is_read_unless_the_home_has_memory(tmp_path):
    home = look(tmp_path / "home", **{"workspace/memory/MEMORY.md": ""})
    own = look(tmp_path / "own", **{"workspace/notes.md": "", "memory/MEMORY.md": ""})

    assert (home.workspace, own.workspace) == ("workspace", "")


@pytest.mark.parametrize(
    ("number", "settings"), [("1", 1), ("100000", 100_000), ("0", None), ("100001", None), ('"9"', None)]
)
def test_a_setting_out_of_range_is_left_out(tmp_path, number, settings):
    config = f'{{"agents": {{"defaults": {{"memoryWindow": {number}}}}}}}'

    found = look(tmp_path, **{"memory/MEMORY.md": "", "config.json": config})

    assert found.settings.get("memory_window") == settings


@pytest.mark.parametrize(
    ("raw", "is_kept"),
    [(b"- caf\xc3\xa9\n", False), (b"- a\r\n", True), (b"\xef\xbb\xbf- a\n", True), (b"- caf\xe9\n", True)],
)
def test_the_bytes_of_a_document_are_kept_if_its_text_does_not_reproduce_them(raw, is_kept):
    (record,) = parse_document("memory/MEMORY.md", raw, None).items

    assert record.name == "MEMORY.md"
    assert record.raw == (raw if is_kept else None)


def test_history_is_split_at_dates_and_blank_lines():
    text = "[2026-01-01] one\nmore of it\n[2026-01-02] two\n   \r\nundated\n\n"

    assert split_history(text) == ["[2026-01-01] one\nmore of it", "[2026-01-02] two", "undated"]


def test_raw_history_entry_is_kept_whole():
    hub = "[2026-01-02 10:00] [RAW] 2 messages of cli:main\n [2026-01-01 09:00] [user] hi\n\nand\n\n  [2026-01-01] x"
    nanobot = "[2026-01-03 10:00] [RAW] 2 messages\n[2026-01-03T09:00] USER: hi\n\n[2026-01-03T09:01] ASSISTANT: yes"
    text = f"[2026-01-01] one\n\n{hub}\n\n{nanobot}\n\n[2026-01-04 10:00] USER: four\n\nundated\n"

    assert split_history(text) == [
        "[2026-01-01] one",
        "[2026-01-02 10:00] [RAW] 2 messages of cli:main\n[2026-01-01 09:00] [user] hi\n\nand\n\n [2026-01-01] x",
        nanobot,
        "[2026-01-04 10:00] USER: four",
        "undated",
    ]


@pytest.mark.parametrize(("like", "end"), [(b"a\r\nb\n", b"\n"), (b"a\r\nb\r\nc\n", b"\r\n"), (b"a", b"\n")])
def test_line_endings_follow_the_majority_of_the_file(like, end):
    assert document_bytes("x\ny\n", like) == b"x" + end + b"y" + end


def test_untouched_lines_keep_their_ending():
    like = b"a\r\nb\nc\r\nd\ne\n"

    assert document_bytes("a\nb\nnew\nd\nx\n", like) == b"a\r\nb\nnew\nd\nx\n"
    assert document_bytes("a\nc\nd\n", b"\xef\xbb\xbf" + like) == b"\xef\xbb\xbfa\r\nc\r\nd\n"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_text_is_written_in_the_encoding_of_its_file(encoding):
    like = "\ufeffa – b\r\nc\r\n".encode(encoding)

    assert document_bytes(parse_document("MEMORY.md", like, None).items[0].content, like) == like
    assert document_bytes("a – b\nd\n", like) == "\ufeffa – b\r\nd\r\n".encode(encoding)
