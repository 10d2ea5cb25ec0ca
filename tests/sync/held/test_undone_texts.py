"""What a person undid is held when the agent adds it again."""

import pytest

from knowledge_app.models import HeldRow, KeyValue, KnowledgeEntry, Observation
from knowledge_app.services.documents.proposals import append_fact
from knowledge_app.services.rows.agent_changes import change_entry_as_agent
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge, save_entry
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from memoryhub.runs.review import approve_run
from sessions_app.models import Run
from tests.hub import AGENT, PERSON
from tests.sync.test_agent_rewrites import atlas, file
from tests.sync.test_removed_text import WRONG, by, document, learn, observe, set_value

__all__ = ["atlas", "file"]
pytestmark = pytest.mark.django_db
RIGHT = "The shop opens at nine"


def undo(run: Run | None = None, actor=PERSON) -> Run:
    return undo_edit(run or Run.objects.latest("pk"), by=by(actor, 2))


def reworded(workspace) -> KnowledgeEntry:
    """Return an entry that its agent changed to other words."""
    entry = add_knowledge(workspace, RIGHT, category="learned_fact", by=by(AGENT, 0)).entry
    save_entry(entry, {"content": WRONG}, by=by(AGENT, 1))
    return entry


@pytest.mark.parametrize("add", [learn, observe, set_value])
def test_an_agents_rewording_that_a_person_undid_is_held(atlas, add):
    reworded(atlas)
    undo()

    add(atlas, AGENT, WRONG)

    assert HeldRow.objects.get().findings[0]["code"] == "removed"
    assert append_fact(document(), WRONG, by=by(AGENT)).held


def test_a_proposal_that_a_person_approved_and_undid_is_held(atlas):
    entry = add_knowledge(atlas, RIGHT, category="learned_fact", by=by(PERSON, 0)).entry
    change_entry_as_agent(entry, {"content": WRONG}, by=by(AGENT, 1))
    approve_run(Run.objects.get(status="held"), by=by(PERSON, 1))
    undo()
    assert KnowledgeEntry.objects.get().content == RIGHT

    learn(atlas, AGENT, f"{WRONG}.")

    assert HeldRow.objects.exists()
    assert append_fact(document(), WRONG, by=by(AGENT)).held


def test_a_value_that_a_person_undid_is_held_under_another_key(atlas):
    for text in (RIGHT, WRONG):
        write_value(atlas, "opening", text, by=by(AGENT, 0))
    undo()
    assert KeyValue.objects.get().value == RIGHT

    set_value(atlas, AGENT, WRONG)

    assert HeldRow.objects.get().key_value.key == "opening hours"


def test_what_an_agent_undid_itself_may_be_said_again(atlas):
    reworded(atlas)
    undo(actor=AGENT)

    observe(atlas, AGENT, WRONG)

    assert not HeldRow.objects.exists()


def test_a_rewording_that_a_person_undid_and_redid_is_present(atlas):
    reworded(atlas)
    undo(undo())
    assert KnowledgeEntry.objects.get().content == WRONG

    observe(atlas, AGENT, WRONG)

    assert not HeldRow.objects.exists()
    assert append_fact(document(), RIGHT, by=by(AGENT)).held


def test_an_agents_withdrawal_that_a_person_undid_and_redid_is_the_persons(atlas):
    learn(atlas, AGENT, WRONG)
    edit_rows(atlas, "knowledge", "withdraw", [KnowledgeEntry.objects.get().pk], by=by(AGENT, 1))
    undo(undo())
    assert KnowledgeEntry.objects.get().withdrawn_at

    observe(atlas, AGENT, WRONG)

    assert HeldRow.objects.get().observation == Observation.objects.get()
