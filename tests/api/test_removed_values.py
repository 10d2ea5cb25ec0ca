"""What people removed is held also where an agent says it again with a key and its value."""

from __future__ import annotations

import pytest

from knowledge_app.models import KeyValue, KnowledgeEntry
from knowledge_app.services.removed_texts import RemovedTexts
from knowledge_app.services.rows.key_values import write_value
from sessions_app.models import Run
from sessions_app.services.runs import cancel_run
from tests.api.conftest import Call, edit
from tests.hub import by

pytestmark = pytest.mark.django_db
CODE = "Door code of the house: 4711"


def remove_code(agent: Call) -> None:
    agent("POST", "/knowledge", {"content": CODE})
    edit(KnowledgeEntry.objects.get(), "withdraw")


@pytest.mark.parametrize(
    ("key", "text"),
    [("door%20code%20of%20the%20house", "4711"), ("door_code", "4711 of the house"), ("4711", CODE[:-6])],
)
def test_a_key_and_value_that_say_together_what_a_person_removed_are_held(agent, key, text):
    remove_code(agent)

    assert agent("PUT", f"/value?key={key}", {"value": text}).json()["held"]
    assert not agent("PUT", f"/value?key={key}-2", {"value": "8822"}).json()["held"]


@pytest.mark.parametrize(("action", "values"), [("withdraw", {}), ("assign", {"value": "8822"})])
def test_what_a_person_removed_from_a_key_is_held_elsewhere(agent, action, values):
    agent("PUT", "/value?key=door_code_of_the_house", {"value": "4711"})
    edit(KeyValue.objects.get(), action, **values)

    assert agent("POST", "/knowledge", {"content": CODE}).json()["held"]
    assert not agent("POST", "/knowledge", {"content": CODE.replace("4711", "8822")}).json()["held"]


def test_what_a_key_and_its_value_say_at_present_is_not_held(agent, workspace):
    remove_code(agent)
    write_value(workspace, "door code of the house", "4711", by=by())

    answer = agent("POST", "/observations", {"observations": [{"category": "finding", "content": CODE}]})

    assert not answer.json()["added"][0]["held"]


@pytest.mark.parametrize(("text", "is_held"), [("Paris", False), (CODE, True)])
def test_a_refused_value_of_a_key_that_is_gone_is_held_elsewhere_if_it_says_enough(agent, workspace, text, is_held):
    write_value(workspace, "home", "Porto", by=by())
    run = agent("PUT", "/value?key=home", {"value": text}).json()["run"]
    cancel_run(Run.objects.get(pk=run), by=by())
    KeyValue.objects.all().delete()

    assert agent("PUT", "/value?key=town", {"value": text}).json()["held"] == is_held
    assert agent("POST", "/knowledge", {"content": text}).json()["held"] == is_held


def test_over_many_lines_too_what_the_memory_says_at_present_is_not_said_again(agent, workspace):
    remove_code(agent)
    text = "\n".join(CODE.split())
    assert RemovedTexts(workspace).added_again("", text) == {1, 2, 3, 4, 5, 6}

    write_value(workspace, "door code of the house", "4711", by=by())

    assert RemovedTexts(workspace).added_again("", text) == set()
