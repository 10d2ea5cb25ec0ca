from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.layouts.records import FileRead, KnowledgeRecord
from tests.lib.layouts.test_gemini_cli import values
from tests.shared import FIXTURES

ANA = {"type": "entity", "name": "Ana", "entityType": "person", "observations": ["keeps bees"]}
ROBIN = {"type": "entity", "name": "Robin", "entityType": "person", "observations": ["keeps bees"]}
KNOWS = {"type": "relation", "from": "Ana", "to": "Robin", "relationType": "knows"}


def read_one(place: Path, *records: Any, name: str = "memory.jsonl", only: str = "") -> FileRead:
    (place / name).write_text("\n".join(json.dumps(record) for record in records))
    with Folder(place) as folder:
        [read] = read_folder(folder, detect(folder, only=only), only=only)
    return read


def knowledge(read: FileRead) -> list[KnowledgeRecord]:
    return [item for item in read.items if isinstance(item, KnowledgeRecord)]


@pytest.mark.skipif(not (FIXTURES / "server-memory").exists(), reason="the fixtures are not beside the clone")
def test_the_sample_has_three_observations_and_a_relation():
    with Folder(FIXTURES / "server-memory") as folder:
        assert detect(folder).layout == "server-memory"
        [read] = read_folder(folder, detect(folder))

    found = knowledge(read)
    assert not read.problems
    assert [(record.source, record.content, record.tags) for record in found] == [
        ("Ana", "deploys to eu-west-1", ["person"]),
        ("Ana", "keeps bees", ["person"]),
        ("Atlas", "pool limit is 60", ["project"]),
        ("Ana", "Ana works on Atlas", ["relation"]),
    ]


def test_the_same_observation_of_two_entities_is_two_entries(tmp_path):
    found = knowledge(read_one(tmp_path, ANA, ROBIN))

    assert len({record.content_id for record in found}) == 2
    assert all(record.is_by_id for record in found)


def test_the_same_observation_of_one_entity_is_one_entry(tmp_path):
    read = read_one(tmp_path, ANA, ANA, KNOWS)

    assert [record.content for record in knowledge(read)] == ["keeps bees", "Ana knows Robin"]
    assert [problem.what for problem in read.problems] == ["an observation or relation appears twice"]


def test_a_file_of_any_name_is_read_by_itself(tmp_path):
    (tmp_path / "other.jsonl").write_text("{}")

    assert read_one(tmp_path, ANA, name="graph.jsonl", only="graph.jsonl").path == "graph.jsonl"


@pytest.mark.parametrize("name", ["memory.jsonl", "graph.jsonl"])
def test_a_file_of_utf_16_is_read(tmp_path, name):
    (tmp_path / name).write_bytes(f"{json.dumps(ANA)}\n{json.dumps(ROBIN)}\n".encode("utf-16"))
    with Folder(tmp_path) as folder:
        [read] = read_folder(folder, detect(folder))

    assert [one.source for one in knowledge(read)] == ["Ana", "Robin"]
    assert read.problems == []


def test_a_damaged_first_line_loses_only_itself(tmp_path):
    (tmp_path / "graph.jsonl").write_text(f'{{"type":"ent\n{json.dumps(ROBIN)}\n')
    with Folder(tmp_path) as folder:
        [read] = read_folder(folder, detect(folder))

    assert [one.content for one in knowledge(read)] == ["keeps bees"]
    assert [(one.line, one.outcome) for one in read.problems] == [(1, "rejected")]


@pytest.mark.parametrize(("text", "line", "outcome"), [("", None, "held"), ("no graph\n", 1, "rejected")])
def test_a_followed_file_that_was_emptied_or_damaged_is_reported_and_not_gone(tmp_path, text, line, outcome):
    (tmp_path / "memory.jsonl").write_text(text)
    with Folder(tmp_path) as folder:
        [read] = read_folder(folder, detect(folder, "server-memory"))

    assert [(one.file, one.line, one.outcome) for one in read.problems] == [("memory.jsonl", line, outcome)]


def test_fields_that_entries_lack_are_kept_and_unknown_records_reported(tmp_path):
    read = read_one(tmp_path, ANA | {"confidence": 1}, {"type": "note"}, {"type": "note"}, {"type": "entity"})

    assert knowledge(read)[0].extra == {"entity": "Ana", "confidence": 1}
    assert [problem.what for problem in read.problems] == [
        "a record of the unknown type note (2 times, lines 2, 3)",
        "is neither an entity with observations nor a relation",
    ]


def test_an_entity_without_observations_is_reported(tmp_path):
    read = read_one(tmp_path, ANA | {"observations": []})

    assert [problem.outcome for problem in read.problems] == ["noted"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80)
@given(values, values)
def test_values_of_any_type_never_raise(tmp_path, first, second):
    entity = ANA | {"entityType": first, "observations": [first, second]}
    read_one(tmp_path, ANA, entity, KNOWS | {"to": first}, {"type": first}, second)
