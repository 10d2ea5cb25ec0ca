import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from knowledge_app.models import Observation, Term, TermRelation
from knowledge_app.services.documents.editing import start_document
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.documents.proposals import write_text
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.observations import NewObservation, store
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.search.recall import log_recall, recall
from memoryhub.sync.importing import import_workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON
from tests.searches import as_agent
from tests.shared import FIXTURES

pytestmark = pytest.mark.django_db
SAID = [
    NewObservation("finding", "Database uses PostgreSQL", "GOAL:look"),
    NewObservation("insight", "Chose PostgreSQL for its JSON support"),
    NewObservation("insight", "The deploy freeze begins in December"),
    NewObservation("lesson", "Index foreign keys for performance"),
    NewObservation("finding", "东京办公室的网络很慢"),
]


@pytest.fixture
def said(workspace):
    return store(workspace, SAID, by=By(PERSON, NOW)).added


def test_recall_returns_grids_format(workspace, said):
    assert recall(as_agent(workspace), "What did we decide about the PostgreSQL database?", now=NOW).texts == {
        "findings": ["Database uses PostgreSQL"],
        "insights": ["Chose PostgreSQL for its JSON support"],
        "lessons": [],
    }


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("indexing of a foreign key", "Index foreign keys for performance"),
        ("FREEZE", "The deploy freeze begins in December"),
        ("东京 网络", "东京办公室的网络很慢"),
        ("what was looked at", "Database uses PostgreSQL"),
    ],
)
def test_inflected_forms_case_and_other_scripts_match(workspace, said, query, text):
    assert text in [one for rows in recall(as_agent(workspace), query, now=NOW).texts.values() for one in rows]


@pytest.mark.parametrize("query", ["", "   ", '"', "AND OR NOT", "zebra", "*:*", "x" * 10_000])
def test_a_query_without_matches_is_empty(workspace, said, query):
    assert recall(as_agent(workspace), query, now=NOW).texts == {"findings": [], "insights": [], "lessons": []}


def test_the_limit_applies_to_each_category(workspace):
    many = [
        NewObservation("finding", f"port {number} is open on host {word}") for number, word in enumerate("abcdefg")
    ]
    store(workspace, many, by=By(PERSON, NOW), even_if_known=True)

    assert len(recall(as_agent(workspace), "open port", now=NOW).texts["findings"]) == 5
    assert len(recall(as_agent(workspace), "open port", now=NOW, limit=2).texts["findings"]) == 2
    assert recall(as_agent(workspace), "open port", now=NOW, limit=0).texts["findings"] == []


def test_withdrawn_observations_are_not_recalled(workspace, said):
    edit_rows(workspace, "observations", "withdraw", [said[0].pk], by=By(PERSON, NOW))

    assert recall(as_agent(workspace), "PostgreSQL", now=NOW).texts["findings"] == []


def test_recall_counts_as_an_access_but_not_as_a_confirmation(workspace, said):
    log_recall(recall(as_agent(workspace), "PostgreSQL", now=NOW), NOW)

    row = Observation.objects.get(pk=said[0].pk)
    assert (row.access_count, row.accessed_at, row.last_verified_at, row.confirmation_count) == (1, NOW, None, 0)
    assert Observation.objects.get(pk=said[2].pk).access_count == 0


def test_the_page_shows_what_an_agent_gets(workspace, said, viewer_client):
    url = reverse("recall", args=["atlas"])

    assert "Ask a question" in viewer_client.get(url).content.decode()
    html = viewer_client.get(url + "?q=postgresql+database").content.decode()
    assert "Database uses PostgreSQL" in html
    assert "No results" in viewer_client.get(url + "?q=zebra").content.decode()
    assert Observation.objects.get(pk=said[0].pk).access_count == 0


def test_the_command_returns_grids_format(workspace, said, command):
    document = command("recall", "atlas", "postgresql", "--limit", "1")

    assert document == {
        "findings": ["Database uses PostgreSQL"],
        "insights": ["Chose PostgreSQL for its JSON support"],
        "lessons": [],
        "memories": [],
        "corrected": {},
        "notes": [],
    }
    explained = command("recall", "atlas", "the postgresql", "--explain")
    assert explained["words"] == ["postgresql"]
    assert explained["scores"]["findings"][0]["score"] > 0


def test_recall_finds_facts_knowledge_values_and_history(workspace, viewer_client, command):
    write_text(
        start_document(workspace, "MEMORY.md"),
        "- The label service has 4 replicas\n",
        base_number=0,
        by=By(PERSON, NOW),
        reason="",
    )
    entry = add_knowledge(workspace, "Label prices are in cents", category="learned_fact", by=By(PERSON, NOW)).entry
    write_value(workspace, "label.host", "labels.example.org", by=By(PERSON, NOW))
    write_value(workspace, "label_password", "hunter2", by=By(PERSON, NOW))
    add_note(workspace, "Restarted the label service", by=By(PERSON, NOW))

    recalled = recall(as_agent(workspace), "label", now=NOW)
    log_recall(recalled, NOW)

    texts = {one["text"]: one["kind"] for one in recalled.document["memories"]}
    assert texts == {
        "The label service has 4 replicas": "memory",
        "Label prices are in cents": "knowledge",
        "label.host = labels.example.org": "key_value",
        "label_password = ••••": "key_value",
        "Restarted the label service": "history",
    }
    entry.refresh_from_db()
    assert entry.access_count == 1
    html = viewer_client.get(reverse("recall", args=["atlas"]) + "?q=label").content.decode()
    assert "The label service has 4 replicas" in html
    assert "history entry" in html
    assert command("recall", "atlas", "label")["memories"] == recalled.document["memories"]
    assert len(recall(as_agent(workspace), "label", now=NOW, limit=2).memories) == 2


def test_grid_mode_searches_keys_and_values_by_substring(workspace, command):
    write_value(workspace, "label.host", "labels.example.org", by=By(PERSON, NOW))
    write_value(workspace, "region", "near Babel", by=By(PERSON, NOW))
    write_value(workspace, "label_password", "abel-secret", by=By(PERSON, NOW))
    add_note(workspace, "abel", by=By(PERSON, NOW))

    found = command("search", "abel", "--workspace", "atlas", "--mode", "grid")["results"]

    assert [(one["kind"], one["text"]) for one in found] == [
        ("key_value", "label.host = labels.example.org"),
        ("key_value", "label_password = ••••"),
        ("key_value", "region = near Babel"),
    ]
    assert command("search", "abel-secret", "--workspace", "atlas", "--mode", "grid")["results"] == []


def relate(workspace, one, other, cosine):
    terms = [Term.objects.get_or_create(workspace=workspace, text=text)[0] for text in (one, other)]
    TermRelation.objects.create(term=terms[0], related=terms[1], cosine=cosine)


def test_rare_words_are_expanded_by_the_graph(workspace, said, viewer_client, command):
    assert recall(as_agent(workspace), "thaw", now=NOW).texts["insights"] == []
    relate(workspace, "thaw", "freeze", 0.8)

    recalled = recall(as_agent(workspace), "thaw", now=NOW)

    assert recalled.texts["insights"] == ["The deploy freeze begins in December"]
    assert recalled.added == {"thaw": [("freeze", 0.4)]}
    html = viewer_client.get(reverse("recall", args=["atlas"]) + "?q=thaw").content.decode()
    assert "freeze 0.40" in html
    explained = command("recall", "atlas", "thaw", "--explain")
    assert explained["added"] == {"thaw": [{"word": "freeze", "weight": 0.4}]}


def test_exact_matches_come_before_expansions(workspace, said):
    relate(workspace, "json", "database", 0.9)

    assert recall(as_agent(workspace), "JSON", now=NOW).texts["insights"] == ["Chose PostgreSQL for its JSON support"]
    assert recall(as_agent(workspace), "json", now=NOW).texts["findings"] == ["Database uses PostgreSQL"]


def test_common_words_are_not_expanded(workspace, said):
    many = [NewObservation("finding", f"postgresql {word} {word}") for word in ("port", "role", "index")]
    store(workspace, many, by=By(PERSON, NOW), even_if_known=True)
    relate(workspace, "postgresql", "freeze", 0.9)

    assert recall(as_agent(workspace), "postgresql", now=NOW).added == {}


def test_recall_never_calls_the_provider(workspace, said, settings):
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "openai"
    settings.MEMORYHUB_EMBEDDING_BASE_URL = "http://127.0.0.1:49151/v1"
    relate(workspace, "thaw", "freeze", 0.8)

    assert recall(as_agent(workspace), "thaw", now=NOW).texts["insights"] == ["The deploy freeze begins in December"]


@pytest.mark.skipif(not FIXTURES.exists(), reason="the shared samples are not here")
def test_observations_of_a_real_agent_are_recalled():
    workspace = import_workspace(FIXTURES / "grid", by=By(PERSON, NOW)).workspace

    with_graph = recall(as_agent(workspace), "DHL rate limit", now=NOW)
    assert with_graph.texts["findings"][0] == "DHL API rate limit is 100 requests per minute"
    assert set(with_graph.texts) == {"findings", "insights", "lessons"}
    Term.objects.all().delete()
    without = recall(as_agent(workspace), "DHL rate limit", now=NOW)
    assert without.texts["findings"][0] == with_graph.texts["findings"][0]
    assert (without.added, bool(with_graph.added)) == ({}, True)


def test_nothing_is_counted_or_asked_twice(workspace, said):
    add_knowledge(workspace, "PostgreSQL listens on port 5432", category="learned_fact", by=By(PERSON, NOW))
    asked = "PostgreSQL foreign zebras"

    recall(as_agent(workspace), asked, now=NOW)
    with CaptureQueriesContext(connection) as queries:
        recall(as_agent(workspace), asked, now=NOW)

    statements = [one["sql"] for one in queries.captured_queries]
    counts = [sql for sql in statements if sql.lower().startswith("select count(")]
    assert len(set(counts)) == len(counts)
    assert sum(sql.startswith("SELECT count(*), min(id)") for sql in counts) == 2  # "zebras" in all kinds
    assert sum("dense_search" in sql for sql in statements) == 1


def test_a_recall_without_matches_writes_nothing(workspace, said):
    with CaptureQueriesContext(connection) as queries:
        log_recall(recall(as_agent(workspace), "", now=NOW), NOW)

    assert not [one["sql"] for one in queries.captured_queries if one["sql"].startswith(("BEGIN", "UPDATE"))]
