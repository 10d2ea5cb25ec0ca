import pytest
from django.urls import reverse

from knowledge_app.models import Observation
from knowledge_app.services.edits import edit_rows
from knowledge_app.services.observations import Said, store
from memoryhub.flows.recall import note_reading, recall
from memoryhub.flows.sync import import_workspace
from tests.hub import NOW, PERSON
from tests.shared import FIXTURES

pytestmark = pytest.mark.django_db
SAID = [
    Said("finding", "Database uses PostgreSQL", "GOAL:look"),
    Said("insight", "Chose PostgreSQL for its JSON support"),
    Said("insight", "The deploy freeze begins in December"),
    Said("lesson", "Index foreign keys for performance"),
    Said("finding", "东京办公室的网络很慢"),
]


@pytest.fixture
def said(workspace):
    return store(workspace, SAID, actor=PERSON, now=NOW).added


def test_the_answer_has_the_shape_of_the_question_asked_of_grid(workspace, said):
    assert recall(workspace, "What did we decide about the PostgreSQL database?").texts == {
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
def test_forms_of_a_word_case_and_other_scripts_are_found(workspace, said, query, text):
    assert text in [one for rows in recall(workspace, query).texts.values() for one in rows]


@pytest.mark.parametrize("query", ["", "   ", '"', "AND OR NOT", "zebra", "*:*", "x" * 10_000])
def test_what_fits_nothing_finds_nothing(workspace, said, query):
    assert recall(workspace, query).texts == {"findings": [], "insights": [], "lessons": []}


def test_the_limit_is_of_each_kind(workspace):
    many = [Said("finding", f"port {number} is open on host {word}") for number, word in enumerate("abcdefg")]
    store(workspace, many, actor=PERSON, now=NOW, even_if_known=True)

    assert len(recall(workspace, "open port").texts["findings"]) == 5
    assert len(recall(workspace, "open port", limit=2).texts["findings"]) == 2
    assert recall(workspace, "open port", limit=0).texts["findings"] == []


def test_what_is_withdrawn_is_not_recalled(workspace, said):
    edit_rows(workspace, "observations", "withdraw", [said[0].pk], actor=PERSON, now=NOW)

    assert recall(workspace, "PostgreSQL").texts["findings"] == []


def test_reading_is_counted_and_confirms_nothing(workspace, said):
    note_reading(recall(workspace, "PostgreSQL"), NOW)

    row = Observation.objects.get(pk=said[0].pk)
    assert (row.access_count, row.accessed_at, row.last_verified_at, row.confirmation_count) == (1, NOW, None, 0)
    assert Observation.objects.get(pk=said[2].pk).access_count == 0


def test_the_page_shows_what_an_agent_would_get(workspace, said, viewer_client):
    url = reverse("recall", args=["atlas"])

    assert "Ask a question" in viewer_client.get(url).content.decode()
    html = viewer_client.get(url + "?q=postgresql+database").content.decode()
    assert "Database uses PostgreSQL" in html
    assert "Nothing is recalled" in viewer_client.get(url + "?q=zebra").content.decode()
    assert Observation.objects.get(pk=said[0].pk).access_count == 0


def test_the_command_answers_as_grid_does(workspace, said, command):
    document = command("recall", "atlas", "postgresql", "--limit", "1")

    assert document == {
        "findings": ["Database uses PostgreSQL"],
        "insights": ["Chose PostgreSQL for its JSON support"],
        "lessons": [],
    }
    explained = command("recall", "atlas", "the postgresql", "--explain")
    assert explained["words"] == ["postgresql"]
    assert explained["scores"]["findings"][0]["score"] > 0


@pytest.mark.skipif(not FIXTURES.exists(), reason="the shared samples are not here")
def test_observations_of_a_real_agent_are_recalled():
    workspace = import_workspace(FIXTURES / "grid", actor=PERSON, now=NOW).workspace

    assert recall(workspace, "DHL rate limit").texts["findings"][0] == "DHL API rate limit is 100 requests per minute"
