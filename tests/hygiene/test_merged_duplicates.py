"""Which of duplicates is to be kept, and that those which a person merged are held when an agent adds them again."""

import pytest

from knowledge_app.models import Concern, Fact, HeldRow, KnowledgeEntry, Observation
from knowledge_app.services.documents.proposals import append_fact
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from sessions_app.models import Run, Workspace
from tests.hub import AGENT, NOW, PERSON
from tests.hygiene.test_scanning import facts, knowledge, scan
from tests.sync.test_agent_rewrites import atlas, file
from tests.sync.test_removed_text import WRONG, by, document, learn, observe, set_value

__all__ = ["atlas", "file"]
pytestmark = pytest.mark.django_db


def merged(workspace: Workspace, *texts: str) -> Run:
    """Let a person merge entries with these texts into the first one."""
    pks = [add_knowledge(workspace, text, category="learned_fact", by=by(AGENT, 0)).entry.pk for text in texts]
    return edit_rows(workspace, "knowledge", "merge", [pks], by=by(PERSON, 1))


@pytest.mark.parametrize("add", [learn, observe, set_value])
def test_a_merged_duplicate_is_held_as_another_row_and_as_a_fact(atlas, add):
    merged(atlas, "On Mondays the shop is closed", WRONG)

    add(atlas, AGENT, f"{WRONG}.")

    assert HeldRow.objects.get().findings[0]["code"] == "removed"
    assert append_fact(document(), WRONG, by=by(AGENT)).held


def test_a_merged_duplicate_with_the_same_words_was_not_removed(atlas):
    merged(atlas, f"{WRONG}.", f"{WRONG}!")

    observe(atlas, AGENT, WRONG)

    assert Observation.objects.exists()
    assert not HeldRow.objects.exists()


def test_an_undone_merge_removed_nothing(atlas):
    undo_edit(merged(atlas, "On Mondays the shop is closed", WRONG), by=by(PERSON, 2))

    observe(atlas, AGENT, WRONG)

    assert not HeldRow.objects.exists()


@pytest.mark.parametrize("table", ["knowledge", "observations", "facts"])
def test_of_duplicates_the_one_that_a_person_wrote_is_to_be_kept(atlas, table):
    text, other = "The label service runs in Porto", "The label service runs in Porto!"
    observe(atlas, AGENT, other) if table == "knowledge" else learn(atlas, AGENT, other)
    if table == "facts":
        append_fact(document(), text, by=by(PERSON))
    else:
        (learn if table == "knowledge" else observe)(atlas, PERSON, text)

    scan(atlas)

    assert Concern.objects.get(kind="duplicate").table == table


@pytest.mark.parametrize("is_pinned", [True, False])
def test_of_duplicates_a_verified_row_is_to_be_kept_unless_a_fact_is_pinned(workspace, is_pinned):
    (fact,) = facts(workspace, "The label service runs in Porto")
    Fact.objects.filter(pk=fact.pk).update(pinned=is_pinned)
    entry = knowledge(workspace, "The label service runs in Porto.")
    KnowledgeEntry.objects.filter(pk=entry.pk).update(last_verified_at=NOW)

    scan(workspace)

    pair = Concern.objects.get(kind="duplicate")
    assert (pair.table, pair.object_id) == (("facts", fact.pk) if is_pinned else ("knowledge", entry.pk))
