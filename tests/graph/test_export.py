from __future__ import annotations

import json

import pytest

from knowledge_app.models import SemanticGraph, Term, TermRelation
from memoryhub.graph.export import graph_document, graph_parts
from memoryhub.graph.neighbours import import_graph
from memoryhub.lib.layouts.records import GraphRecord, TermRecord
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON
from tests.shared import FIXTURES

pytestmark = pytest.mark.django_db
FILE = {"path": "semantic_graph.json", "now": NOW, "dry_run": False}


@pytest.mark.skipif(not FIXTURES.exists(), reason="the shared samples are not here")
def test_grids_graph_is_exported_byte_for_byte():
    import_workspace(FIXTURES / "grid", by=By(PERSON, NOW))
    source = (FIXTURES / "grid" / "semantic_graph.json").read_text()

    document = graph_document(Workspace.objects.get())

    assert document == json.loads(source)
    assert list(document["meta"]) == list(json.loads(source)["meta"])
    assert list(document["terms"]) == list(json.loads(source)["terms"])
    assert "".join(graph_parts(Workspace.objects.get())) == source


def take(workspace, *terms: TermRecord, **values) -> None:
    graph = GraphRecord(**{"provider": "p", "model": "m", "base_url": "", "dimensions": 2, "built_at": None,
                           "built_at_text": "once", "terms": list(terms)} | values)  # fmt: skip
    import_graph(workspace=workspace, graph=graph, **FILE)


def test_unknown_fields_are_exported(workspace):
    take(workspace, TermRecord("a", [1.0, 0.5], [], {"count": 3}), extra={"version": 2})

    assert graph_document(workspace) == {
        "meta": {"provider": "p", "model": "m", "dimensions": 2, "built_at": "once", "version": 2},
        "terms": {"a": {"embedding": [1.0, 0.5], "related": [], "count": 3}},
    }


def test_search_only_and_removed_relations_are_not_exported(workspace):
    take(workspace, *(TermRecord(name, [1.0, 0.5], []) for name in "abcde"))
    pks = dict(Term.objects.values_list("text", "pk"))
    TermRelation.objects.bulk_create(
        TermRelation(term_id=pks["a"], related_id=pks[name], rank=rank, **values)
        for rank, (name, values) in enumerate(
            {
                "b": {"cosine": 0.69},
                "c": {"cosine": 0.7},
                "d": {"cosine": 0.2, "pinned": True},
                "e": {"cosine": 0.9, "is_removed": True},
            }.items()
        )
    )

    assert graph_document(workspace)["terms"]["a"]["related"] == ["c", "d"]


def test_embeddings_of_another_model_are_not_exported(workspace):
    take(workspace, TermRecord("a", [1.0, 0.5], ["b"]), TermRecord("b", [0.5, 0.5], []))
    Term.objects.filter(text="a").update(fingerprint="other/model/2")
    Term.objects.filter(text="b").update(fingerprint="other/model/2")

    assert graph_document(workspace)["terms"] == {"a": {"embedding": [], "related": ["b"]}}


def test_the_hubs_graph_has_its_build_time_in_utc(workspace):
    SemanticGraph.objects.create(workspace=workspace, provider="openai", model="m", dimensions=3, built_at=NOW)

    assert graph_document(workspace)["meta"]["built_at"] == "2026-04-01T12:00:00Z"
    assert "".join(graph_parts(workspace)).endswith('"terms": {}\n}')


def test_numbers_and_characters_are_written_as_in_go(workspace):
    take(workspace, TermRecord("<&>", [2.0, 0.00005], []), TermRecord("b", [1e-7, -0.0], []))

    text = "".join(graph_parts(workspace))

    assert '"\\u003c\\u0026\\u003e"' in text
    assert [line.strip(" ,") for line in text.splitlines() if line.startswith("        ")] == [
        "2", "0.00005", "1e-7", "-0"
    ]  # fmt: skip
    assert json.loads(text) == graph_document(workspace)


def test_an_empty_graph_can_be_exported(workspace):
    document = graph_document(workspace)

    assert document == {"meta": {"provider": "", "model": "", "dimensions": 0, "built_at": ""}, "terms": {}}
    assert json.loads("".join(graph_parts(workspace))) == document
