"""What a person replaced or withdrew by importing a table is held when an agent adds it again."""

from datetime import UTC

import pytest

from knowledge_app.models import HeldRow, KeyValue, KnowledgeEntry, Observation
from knowledge_app.services.documents.proposals import append_fact
from knowledge_app.services.rows.knowledge import add_knowledge, save_entry
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.lib.tables import Table
from memoryhub.spreadsheets.importing import import_rows
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor
from tests.hub import AGENT, PERSON
from tests.sync.test_agent_rewrites import atlas, file
from tests.sync.test_removed_text import WRONG, by, document, learn, observe, set_value

__all__ = ["atlas", "file"]
pytestmark = pytest.mark.django_db
RIGHT = "The shop is open on Tuesday"
TABLES = {
    "knowledge": (KnowledgeEntry, "content", learn),
    "observations": (Observation, "content", observe),
    "key_values": (KeyValue, "value", set_value),
}


def take(workspace: Workspace, table: str, *, actor: Actor = PERSON, seconds: float = 1, **values: str) -> None:
    """Import a table with other values of the only row."""
    row = {"workspace": workspace.slug, "id": str(TABLES[table][0].objects.get().pk), **values}
    judged = import_rows(table, Table(list(row), [row]), source="", zone=UTC, by=by(actor, seconds), dry_run=False)
    assert judged.counts == {"changed": 1}


@pytest.mark.parametrize("table", TABLES)
def test_a_text_that_a_table_replaced_is_held_as_a_row_and_as_a_fact(atlas, table):
    _, field, add = TABLES[table]
    add(atlas, AGENT, WRONG)
    take(atlas, table, **{field: RIGHT})

    assert append_fact(document(), WRONG, by=by(AGENT)).held
    other = observe if table == "knowledge" else learn
    other(atlas, AGENT, WRONG)

    assert HeldRow.objects.get().findings[0]["code"] == "removed"
    assert append_fact(document(), RIGHT, by=by(AGENT)).revision


def test_a_table_that_changes_other_fields_replaces_no_text(atlas):
    learn(atlas, AGENT, WRONG)
    take(atlas, "knowledge", source="the baker")
    entry = KnowledgeEntry.objects.get()
    edit_rows(atlas, "knowledge", "withdraw", [entry.pk], by=by(AGENT, 2))

    observe(atlas, AGENT, WRONG)

    assert not HeldRow.objects.exists()


def test_each_of_several_tables_replaces_a_text(atlas):
    learn(atlas, AGENT, WRONG)
    take(atlas, "knowledge", content="The shop is closed on Sunday")
    take(atlas, "knowledge", content=RIGHT, seconds=2)

    for text in (WRONG, "The shop is closed on Sunday"):
        assert append_fact(document(), text, by=by(AGENT)).held


def test_an_entry_that_a_table_withdrew_is_held_also_if_its_agent_edited_it_before(atlas):
    entry = add_knowledge(atlas, RIGHT, category="learned_fact", by=by(AGENT, 0)).entry
    save_entry(entry, {"content": WRONG}, by=by(AGENT, 0))
    take(atlas, "knowledge", withdrawn_at="2026-04-02T00:00:00Z")

    observe(atlas, AGENT, WRONG)

    assert HeldRow.objects.get().findings[0]["code"] == "removed"
