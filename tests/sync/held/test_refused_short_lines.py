"""Refused lines and texts of one or two words are held when they come again in the same words."""

import pytest

from knowledge_app.models import HeldChange, HeldRow
from knowledge_app.services.documents.proposals import append_fact, propose_text, write_text
from knowledge_app.services.rows.agent_changes import change_entry_as_agent, write_value_as_agent
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.runs.review import reject
from sessions_app.models import Run
from sessions_app.services.runs import cancel_run
from tests.hub import AGENT, PERSON
from tests.sync.test_agent_rewrites import TEXT, atlas, file
from tests.sync.test_removed_text import by, document, learn, observe

__all__ = ["atlas", "file"]
pytestmark = pytest.mark.django_db


def refuse(text: str) -> None:
    propose_text(document(), TEXT + text, base_number=None, reason="", by=by(AGENT, 0))
    reject(HeldChange.objects.get(status="pending"), by=by(PERSON, 1), reason="wrong")


@pytest.mark.parametrize("line", ["Bob smokes", "PIN 4711", "Olga"])
@pytest.mark.usefixtures("atlas")
def test_a_refused_fact_of_few_words_is_held(line):
    refuse(f"- {line}\n")

    assert append_fact(document(), line, by=by(AGENT)).held
    assert append_fact(document(), f"{line} no more", by=by(AGENT)).revision


@pytest.mark.parametrize("add", [learn, observe])
def test_a_refused_fact_of_few_words_is_held_as_a_row(atlas, add):
    refuse("- Bob smokes\n")

    add(atlas, AGENT, "Bob smokes.")

    assert HeldRow.objects.get().findings[0]["code"] == "removed"


@pytest.mark.usefixtures("atlas")
def test_refused_headings_and_paragraphs_of_few_words_are_no_facts():
    refuse("\n## People\n\nBob says:\n\n---\n\n- Bob smokes a lot\n")

    text = f"{TEXT}\n## People\n\nBob says:\n\n---\n\n- likes tea\n"
    assert write_text(document(), text, base_number=document().head.number, by=by(AGENT), reason="").revision


def test_a_refused_text_of_an_entry_is_held_however_short(atlas):
    entry = add_knowledge(atlas, "Bob doesn't smoke", category="learned_fact", by=by(PERSON, 0)).entry
    change_entry_as_agent(entry, {"content": "Bob smokes"}, by=by(AGENT, 1))
    cancel_run(Run.objects.get(status="held"), by=by(PERSON, 2))

    observe(atlas, AGENT, "Bob smokes")

    assert HeldRow.objects.exists()


def test_a_refused_value_of_few_words_may_suit_another_key(atlas):
    write_value(atlas, "open", "no", by=by(PERSON, 0))
    write_value_as_agent(atlas, "open", "yes", by=by(AGENT, 1))
    cancel_run(Run.objects.get(status="held"), by=by(PERSON, 2))

    write_value(atlas, "heated", "yes", by=by(AGENT))

    assert not HeldRow.objects.exists()
