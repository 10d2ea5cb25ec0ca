from datetime import UTC, datetime

import pytest

from knowledge_app.models import KeyValue, KnowledgeEntry, Observation, Term, TermRelation
from knowledge_app.services.rows.importing import import_key_values, import_knowledge, import_observations
from memoryhub.graph.neighbours import import_graph
from memoryhub.lib.layouts.records import GraphRecord, KeyValueRecord, KnowledgeRecord, ObservationRecord, TermRecord
from memoryhub.lib.vectors import unpack

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 4, 1, tzinfo=UTC)
FILE = {"path": "file.json", "now": NOW, "dry_run": False}


def test_a_changed_value_keeps_the_earlier_one(workspace):
    import_key_values(workspace, [KeyValueRecord("theme", "dark")], **FILE)

    tally = import_key_values(workspace, [KeyValueRecord("theme", "light")], **FILE)

    assert +tally.updated == {"key_values": 1}
    assert list(KeyValue.objects.get().history.order_by("history_id").values_list("value", flat=True)) == [
        "dark",
        "light",
    ]


def test_a_key_that_the_file_no_longer_has_stays(workspace):
    import_key_values(workspace, [KeyValueRecord("a", "1"), KeyValueRecord("", "2")], **FILE)

    import_key_values(workspace, [KeyValueRecord("a", "1")], **FILE)

    assert set(KeyValue.objects.values_list("key", flat=True)) == {"a", ""}


def test_a_key_too_long_for_the_index_is_reported(workspace):
    tally = import_key_values(workspace, [KeyValueRecord("k" * 600, "1")], **FILE)

    assert [problem.outcome for problem in tally.problems] == ["rejected"]


def test_knowledge_is_known_by_its_id(workspace):
    record = KnowledgeRecord("id1", "learned_fact", "c", tags=["a"], access_count=1)
    import_knowledge(workspace, [record], **FILE)

    again = import_knowledge(workspace, [record], **FILE)
    used = import_knowledge(
        workspace, [KnowledgeRecord("id1", "learned_fact", "c", tags=["a"], access_count=2)], **FILE
    )

    assert +again.unchanged == {"knowledge": 1}
    assert +used.updated == {"knowledge": 1}
    assert KnowledgeEntry.objects.get().access_count == 2


FULL = ObservationRecord("18819c87-59c8-4371-b1d8-05cc74367b47", "finding", "limit is 100", "GOAL:analyse")
SHORT = ObservationRecord("18819c87", "finding", "limit is 100", is_partial=True)


def test_a_list_adds_nothing_to_a_fuller_export(workspace):
    import_observations(workspace, [FULL], **FILE)

    tally = import_observations(workspace, [SHORT], **FILE)

    assert +tally.unchanged == {"observations": 1}
    assert Observation.objects.get().source == "GOAL:analyse"


def test_an_export_completes_what_a_list_showed(workspace):
    import_observations(workspace, [SHORT], **FILE)

    tally = import_observations(workspace, [FULL], **FILE)

    assert +tally.updated == {"observations": 1}
    assert Observation.objects.get().uid == FULL.uid


def graph(*terms: TermRecord) -> GraphRecord:
    return GraphRecord("p", "m", "", 2, None, "", list(terms))


def test_a_graph_is_taken_once(workspace):
    record = graph(TermRecord("a", [1.0, 0.0], ["b"]), TermRecord("b", [0.33207], ["a"]))

    first = import_graph(workspace=workspace, graph=record, **FILE)
    second = import_graph(workspace=workspace, graph=record, **FILE)

    assert +first.added == {"terms": 2}
    assert +second.unchanged == {"terms": 2}
    assert TermRelation.objects.count() == 2
    assert Term.objects.get(text="a").fingerprint == "p/m/2"
    assert Term.objects.get(text="b").fingerprint == ""
    assert unpack(bytes(Term.objects.get(text="b").embedding)) == [0.33207]


def test_a_related_word_without_a_node_becomes_a_term(workspace):
    import_graph(workspace=workspace, graph=graph(TermRecord("a", [1.0, 0.0], ["c"])), **FILE)

    assert bytes(Term.objects.get(text="c").embedding) == b""


def test_relations_that_a_person_removed_stay_removed(workspace):
    record = graph(TermRecord("a", [1.0, 0.0], ["b"]), TermRecord("b", [0.0, 1.0], []))
    import_graph(workspace=workspace, graph=record, **FILE)
    TermRelation.objects.update(is_removed=True)

    import_graph(workspace=workspace, graph=record, **FILE)

    assert TermRelation.objects.get().is_removed
