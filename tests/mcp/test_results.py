"""What results cost: clients show a model the structured values, the text, or both."""

import json
from contextlib import contextmanager

import pytest

from knowledge_app.models import Fact
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.observations import NewObservation, store
from memoryhub.agents.operations.coverage import covers_query
from memoryhub.lib.search.matching import SearchTooSlow
from memoryhub.search import correcting, counts, ranking
from sessions_app.services.audit import By
from tests.api.conftest import token_for
from tests.hub import NOW, PERSON, add, open_at
from tests.mcp.conftest import call, with_client
from tests.mcp.test_tools import with_document

pytestmark = pytest.mark.usefixtures("one_connection")
BY = By(PERSON, NOW)


@pytest.fixture
def filled(workspace):
    with_document(workspace, "MEMORY.md", "# Facts\n- The label service deploys to Oslo\n")
    add_knowledge(workspace, "Labels are printed in Bergen", category="learned_fact", by=BY)
    store(workspace, [NewObservation("lesson", "Restart the label printer after a paper jam")], by=BY)
    write_value(workspace, "label.host", "labels.example.org", by=BY)
    add_note(workspace, "Looked at the label service", by=BY)
    for number in range(8):
        question = {"role": "user", "content": f"How does the label service work in {number} steps?"}
        add(open_at(workspace, f"cli:{number}"), [question])
    return workspace


def test_a_recall_has_hits_of_every_kind_with_their_ids(filled):
    found = call(token_for(filled), "memory_recall", query="label").structured_content["results"]

    assert {one["kind"] for one in found} == {"memory", "knowledge", "lesson", "key_value", "history"}
    facts = {one["id"] for one in found if one["kind"] == "memory"}
    assert facts == {Fact.objects.get().pk}
    assert all(set(one) == {"kind", "id", "text"} for one in found)


def test_a_recall_says_what_was_corrected(filled, monkeypatch):
    monkeypatch.setattr(correcting, "MILLISECONDS", 60_000)
    note = "No row contains “lable”: “label” was searched instead."

    token = token_for(filled)

    found = call(token, "memory_recall", query="lable")
    prompt = with_client(token, lambda client: client.get_prompt("load_memory", {"topic": "lable"}))

    assert found.structured_content["corrected"] == {"lable": "label"}
    assert found.structured_content["notes"] == [note]
    assert found.content[0].text.startswith(note)
    assert f"# About lable ({note})" in prompt.messages[0].content.text


def test_a_recall_says_that_results_may_be_missing(filled, monkeypatch):
    def time_limit(_connection, _milliseconds):
        raise SearchTooSlow("too slow")

    monkeypatch.setattr(counts, "time_limit", time_limit)

    found = call(token_for(filled), "memory_recall", query="label")

    assert counts.INCOMPLETE in found.structured_content["notes"]
    assert counts.INCOMPLETE in found.content[0].text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_recall", {"query": "label"}),
        ("memory_search", {"query": "label service"}),
        ("history_search", {}),
        ("memory_why", {"fact": None}),
    ],
)
def test_structured_values_are_no_larger_than_the_text(filled, tool, arguments):
    if "fact" in arguments:
        arguments = {"fact": Fact.objects.get().pk}

    result = call(token_for(filled), tool, **arguments)

    values = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
    assert len(values) <= len(result.content[0].text)


@contextmanager
def hurried(_connection, milliseconds):
    """Let every query exceed the usual time limits, but not longer ones."""
    if milliseconds <= ranking.MILLISECONDS:
        raise SearchTooSlow("too slow")
    yield


@pytest.mark.parametrize("whole", [False, True])
def test_a_search_that_was_cut_short_can_ask_for_longer(workspace, monkeypatch, whole):
    add_note(workspace, "The zeppelin moored", by=BY)
    for module in (counts, ranking):
        monkeypatch.setattr(module, "time_limit", hurried)

    result = call(token_for(workspace), "memory_search", query="zeppelin", whole=whole)

    assert (counts.INCOMPLETE in result.content[0].text) != whole


@pytest.mark.parametrize("tool", ["memory_recall", "memory_search"])
def test_hits_without_enough_of_the_query_are_left_out(workspace, tool):
    session = open_at(workspace)
    add(session, [{"role": "user", "content": "Where does the zeppelin moor?"}])
    add(session, [{"role": "assistant", "content": "At the mast."}])
    add_note(workspace, "The zeppelin moored", by=BY)
    for number in range(12):
        add_note(workspace, f"The deployment {number} went well", by=BY)

    found = call(token_for(workspace), tool, query="zeppelin deployment").structured_content["results"]

    assert found
    assert all("zeppelin" in one["text"] for one in found)


@pytest.mark.parametrize(
    ("counts", "cosine", "is_kept"),
    [((1, 0), 0, True), ((0, 1), 0, False), ((0, 0), 0, False), ((0, 0), 0.5, True)],
)
def test_coverage_is_weighted_by_how_rare_a_word_is(counts, cosine, is_kept):
    terms = [{"idf": idf, "count": count} for idf, count in zip((4.0, 0.5), counts, strict=True)]
    graph = {"idf": 9.0, "count": 3, "added_for": "rare"}

    assert covers_query({"terms": [*terms, graph], "cosine": cosine}) is is_kept
