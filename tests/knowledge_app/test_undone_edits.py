"""What people verified and decided is as it was before an edit that is undone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from knowledge_app.models import Fact, KnowledgeEntry, Observation
from knowledge_app.services.decisions import decided_fields
from knowledge_app.services.documents.editing import edit_fact, save_text, start_document
from knowledge_app.services.documents.revisions import lock_document, revise_document
from knowledge_app.services.rows import undoable_edits
from knowledge_app.services.rows.agent_changes import change_entry_as_agent
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from sessions_app.models import Run
from sessions_app.services.audit import By
from sessions_app.services.runs import cancel_run
from tests.hub import AGENT, NOW, PERSON, raises_code
from tests.knowledge_app.test_edits import BY, knowledge

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("table", ["knowledge", "observations"])
@pytest.mark.parametrize("days", [(), (0,), (-1, 0)])
def test_a_text_that_is_put_back_is_verified_as_it_was_although_another_one_was_since(workspace, table, days):
    if table == "knowledge":
        row = knowledge(workspace)
    else:
        row = Observation.objects.create(workspace=workspace, uid="u", category="finding", content="likes tea")

    def edit(day: int, action: str, **values: str) -> Run:
        by = By(PERSON, NOW + timedelta(day))
        return edit_rows(workspace, table, action, [row.pk], values=values, by=by)

    for day in days:
        edit(day, "verify")
    run = edit(1, "assign", content="likes coffee")
    edit(2, "verify")
    edit(3, "verify")

    undo_edit(run, by=By(PERSON, NOW + timedelta(4)))

    row.refresh_from_db()
    assert (row.content, row.last_verified_at) == ("likes tea", NOW if days else None)


def test_a_person_who_undoes_an_agents_edit_decides_about_it(workspace):
    row = knowledge(workspace)
    values = {"category": "user_preference"}
    run = edit_rows(workspace, "knowledge", "assign", [row.pk], values=values, by=By(AGENT, NOW))

    undo_edit(run, by=BY)

    row.refresh_from_db()
    assert decided_fields([row]) == {row.pk: {"category"}}


def test_a_text_that_is_put_back_is_still_verified_if_it_was(workspace):
    row = knowledge(workspace, last_verified_at=NOW)
    run = edit_rows(workspace, "knowledge", "assign", [row.pk], values={"content": "likes coffee"}, by=BY)

    undo_edit(run, by=BY)

    row.refresh_from_db()
    assert (row.content, row.last_verified_at) == ("likes tea", NOW)


def test_a_verification_that_is_redone_is_of_the_words_that_a_person_saw(workspace):
    row = knowledge(workspace)
    undoing = undo_edit(edit_rows(workspace, "knowledge", "verify", [row.pk], by=BY), by=BY)
    change_entry_as_agent(row, {"content": "likes coffee"}, by=By(AGENT, NOW))

    undo_edit(undoing, by=BY)

    row.refresh_from_db()
    assert (row.content, row.last_verified_at) == ("likes coffee", None)


@pytest.mark.parametrize("changed", [False, True])
def test_a_verification_of_a_fact_that_is_redone_is_of_the_words_that_a_person_saw(workspace, changed):
    text = "# Memory\n\n- Olga likes green tea\n"
    document = start_document(workspace, "MEMORY.md")
    save_text(document, text, base_number=0, by=BY, reason="edited")
    fact = Fact.objects.get()
    at = NOW + timedelta(hours=1)
    verifying = edit_rows(workspace, "facts", "verify", [fact.pk], by=By(PERSON, at))
    undoing = undo_edit(verifying, by=By(PERSON, at))
    if changed:
        document, by = lock_document(document.pk), By(AGENT, at + timedelta(hours=1))
        revise_document(document, text.replace("tea", "tea no more"), base=document.head, by=by, reason="edited")

    undo_edit(undoing, by=By(PERSON, at + timedelta(hours=2)))

    fact.refresh_from_db()
    assert fact.last_verified_at == (None if changed else at)


def test_a_fact_that_a_person_reworded_is_verified_as_it_was_before_an_edit_that_is_undone(workspace):
    document = start_document(workspace, "MEMORY.md")
    save_text(document, "- Olga likes green tea\n", base_number=0, by=BY, reason="edited")
    fact, later = Fact.objects.get(), By(PERSON, NOW + timedelta(hours=1))
    edit_rows(workspace, "facts", "verify", [fact.pk], by=BY)
    edit_fact(fact, text="Olga likes black tea", category="", section="", by=later)

    undo_edit(edit_rows(workspace, "facts", "verify", [fact.pk], by=later), by=later)

    fact.refresh_from_db()
    assert (fact.text, fact.last_verified_at) == ("Olga likes black tea", NOW)


def test_the_states_of_edits_are_right_however_often_they_are_undone(workspace):
    row = knowledge(workspace)
    runs = [edit_rows(workspace, "knowledge", "assign", [row.pk], values={"content": "likes coffee"}, by=BY)]

    for _ in range(4):
        runs.append(undo_edit(runs[-1], by=BY))

    assert [Run.objects.get(pk=run.pk).status for run in runs] == ["done", "undone", "done", "undone", "done"]


def test_an_edit_whose_undoing_was_cancelled_can_still_be_undone(workspace, monkeypatch):
    rows = [knowledge(workspace, f"fact {number}") for number in range(3)]
    run = edit_rows(workspace, "knowledge", "withdraw", [row.pk for row in rows], by=BY)
    with monkeypatch.context() as patch:
        patch.setattr(undoable_edits, "AT_ONCE", 1)
        undoing = undo_edit(run, by=BY)  # left to a worker
    with raises_code("run_not_fitting", match="being undone"):
        undo_edit(run, by=BY)

    cancel_run(undoing, by=BY)

    assert Run.objects.get(pk=run.pk).status == "done"
    undo_edit(run, by=BY)
    assert Run.objects.get(pk=run.pk).status == "undone"
    assert not KnowledgeEntry.objects.exclude(withdrawn_at=None).exists()
