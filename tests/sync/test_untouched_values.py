"""What nobody touched is exported as it was: the spelling of numbers, and records that the hub doesn't know."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from knowledge_app.models import KnowledgeEntry
from memoryhub.lib.json_numbers import dump_json, load_json, respelled, with_spellings
from memoryhub.lib.layouts.hub import MANIFEST
from memoryhub.sync.exporting import export_workspace
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Entry
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON

pytestmark = pytest.mark.django_db
NUMBERS = '[1.10, 1E+2, 1e400, -0, 12345678901234567890123, {"a/b~": 2.50}]'
HEAD = (
    '{"_type": "metadata", "key": "cli:a", "created_at": "2026-03-01T12:00:00.500", "updated_at": '
    f'"2026-03-01T12:00:00", "metadata": {{"score": 1.10}}, "last_consolidated": 0, "odd": {NUMBERS}}}'
)
MESSAGE = '{"role": "user", "content": "%s", "timestamp": "2026-03-01T12:00:0%d", "odd": ' + NUMBERS + "}"
UNKNOWN = '{"_type": "new", "odd": %s}' % NUMBERS  # noqa: UP031


def lines(*texts: str) -> str:
    return "".join(f"{text}\n" for text in texts)


def compact(text: str) -> str:
    return text.replace(", ", ",").replace(": ", ":")


def entry(name: str) -> str:
    return (
        f'{{"id": "{name}", "type": "message", "role": "user", "content": "hi", "timestamp": "2026-03-01T12:00:00Z", '
        f'"tokenCount": 3, "compressed": false, "odd": {NUMBERS}}}'
    )


AGTERM = (
    f'{{"sessionId": "s", "entries": [7.50, {entry("a")}, {UNKNOWN}, {entry("b")}, []], "summaries": [], '
    f'"totalTokens": 6.0, "odd": {NUMBERS}}}'
)
GRIP_MESSAGES = ",".join(
    ["7.50", '{"role":"user","content":"one","n":1.10}', UNKNOWN, '{"role":"assistant","content":"two"}', "[]"]
)
GRIP = (
    f'{{"key":"cli:a","messages":[{GRIP_MESSAGES}],"summary":null,"created_at":1.50,"updated_at":2E+1,'
    f'"odd":{NUMBERS}}}'
)
JOURNAL = '{"cursor": %d, "timestamp": "2026-03-01 12:00", "content": "%s", "odd": ' + NUMBERS + "}"
KNOWLEDGE = (
    '{"version": 1, "entries": [{"id": "k", "category": "learned_fact", "content": "c", "source": "s", "tags": [], '
    f'"created_at": 1.50, "accessed_at": 2E+1, "access_count": 0, "odd": {NUMBERS}}}]}}'
)
CACHE = (
    '{"a": {"response": "r", "model": "m", "created_at": 1.50, "accessed_at": 2E+1, "message_preview": "p", '
    f'"odd": {NUMBERS}}}}}'
)
OBSERVATIONS = (
    '[{"category": "finding", "content": "c", "created_at": "2026-03-01T12:00:00Z", "id": "0123456789", '
    f'"source": "s", "odd": {NUMBERS}}}]'
)
FILES = [
    ("sessions/cli_a.jsonl", lines(HEAD, UNKNOWN, MESSAGE % ("one", 1), UNKNOWN, MESSAGE % ("two", 2))),
    ("workspace/memory/history.jsonl", lines(UNKNOWN, JOURNAL % (3, "one"), UNKNOWN, JOURNAL % (4, "two"))),
    ("sessions/cli_a.json", compact(GRIP)),
    ("memory/knowledge.json", KNOWLEDGE),
    ("state/semantic_cache.json", CACHE),
    ("kv.json", f'{{\n  "a": {NUMBERS},\n  "b": 12345678901234567890123\n}}'),
    ("observations-export.json", OBSERVATIONS),
    ("s.json", AGTERM),
]


def exported(folder: Path, path: str, text: str, *, layout: str = "auto") -> str:
    file = folder / "agent" / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    workspace = import_workspace(folder / "agent", by=By(PERSON, NOW)).workspace
    export_workspace(workspace, folder / "out", layout, by=By(PERSON, NOW))
    return "" if layout == "hub" else (folder / "out" / path).read_text()


def without_layout(text: str) -> str:
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize(("path", "text"), FILES, ids=[path for path, _ in FILES])
def test_numbers_keep_their_spelling_and_unknown_records_their_places(tmp_path, path, text):
    assert without_layout(exported(tmp_path, path, text)) == without_layout(text)


@pytest.mark.parametrize(("path", "text"), [FILES[0], FILES[2], FILES[3]])
def test_another_hub_exports_the_numbers_as_well(tmp_path, path, text):
    exported(tmp_path, path, text, layout="hub")
    assert (tmp_path / "out" / MANIFEST).exists()

    copy = import_workspace(tmp_path / "out", by=By(PERSON, NOW)).workspace
    export_workspace(copy, tmp_path / "copy", by=By(PERSON, NOW))

    assert without_layout((tmp_path / "copy" / path).read_text()) == without_layout(text)


def test_lines_before_the_first_entry_of_a_log_are_exported(tmp_path):
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    (tmp_path / "agent" / "memory" / "knowledge.json").write_text(KNOWLEDGE)
    text = "# Log\n\nKept by hand.\n\n[2026-03-01 12:00:00 UTC] one\n"

    (tmp_path / "agent" / "memory" / "HISTORY.md").write_text(text)
    workspace = import_workspace(tmp_path / "agent", by=By(PERSON, NOW)).workspace
    export_workspace(workspace, tmp_path / "out", by=By(PERSON, NOW))

    assert (tmp_path / "out" / "memory" / "HISTORY.md").read_text() == text


def test_a_pruned_session_keeps_unknown_records_between_the_same_messages(tmp_path):
    first = json.loads(compact(GRIP))
    messages = [{"role": "user", "content": f"message {number}"} for number in range(6)]
    file = tmp_path / "agent" / "sessions" / "cli_a.json"
    file.parent.mkdir(parents=True)
    for kept in (messages[:4], [*messages[2:5], {"_type": "new"}, messages[5]]):
        file.write_text(json.dumps(first | {"messages": kept}))
        workspace = import_workspace(tmp_path / "agent", by=By(PERSON, NOW)).workspace
    export_workspace(workspace, tmp_path / "out", by=By(PERSON, NOW))

    found = json.loads((tmp_path / "out/sessions/cli_a.json").read_text())["messages"]

    assert found == [*messages[2:5], {"_type": "new"}, messages[5]]


def test_the_spelling_is_left_out_where_the_value_changed(tmp_path):
    exported(tmp_path, "memory/knowledge.json", KNOWLEDGE, layout="hub")
    row = KnowledgeEntry.objects.get()
    row.extra |= {"odd": [1.2, 100, "1e400"]}
    row.save()

    export_workspace(row.workspace, tmp_path / "changed", "grip", by=By(PERSON, NOW))

    assert '"odd":[1.2,1E+2,1e400]' in without_layout((tmp_path / "changed/memory/knowledge.json").read_text())


def test_pages_and_hashes_have_plain_numbers(tmp_path):
    exported(tmp_path, *FILES[0], layout="hub")
    [first, _] = Entry.objects.order_by("position")

    assert first.extra["odd"] == [1.1, 100.0, "1e400", 0, "12345678901234567890123", {"a/b~": 2.5}]


@pytest.mark.parametrize("hostile", ["1}", "1, 2", '"', "", "NaN", "1\n", 5, None, {"": "1.0"}])
def test_a_forged_spelling_is_never_written(hostile):
    extra = {"number_spellings": {"/a": hostile, "/a/b": "1.0", "": "2.0"}}

    assert json.loads(dump_json(respelled({"a": 1.0, "b": [1]}, extra))) == {"a": 1.0, "b": [1]}


def test_texts_that_look_like_marked_numbers_stay_texts():
    value = load_json('{"a": 1.10, "b": "\\\\u00001.5", "c": "1.5", "d": "\\"\\\\u00002"}')

    assert load_json(dump_json(value)) == value
    assert with_spellings({}, value) == {"number_spellings": {"/a": "1.10"}}
