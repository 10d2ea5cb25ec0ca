"""A fact is verified only as long as its text is the one that a person saw."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from knowledge_app.models import Concern, Fact, MemoryDocument
from knowledge_app.services.documents.editing import curate_facts, edit_fact, restore_revision
from knowledge_app.services.documents.fact_edits import undo_revision
from knowledge_app.services.documents.outside_edits import import_document
from knowledge_app.services.documents.proposals import append_fact, write_text
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from memoryhub.hygiene.resolution import undo_resolution, verify
from memoryhub.lib.layouts.records import DocumentRecord
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By
from tests.hub import AGENT, NOW, PERSON
from tests.hygiene.test_scanning import scan

pytestmark = pytest.mark.django_db
TEXT = "# Facts\n" + "".join(f"- The lamp {n} is in room {n}\n" for n in range(40))
VERIFIED, REWORDED = "The server runs on port 8080", "The server runs on port 6666"
LATER = NOW + timedelta(days=1)


@pytest.fixture
def document(workspace: Workspace) -> MemoryDocument:
    """A document with a verified fact of the agent."""
    record = DocumentRecord("MEMORY.md", TEXT)
    import_document(workspace=workspace, record=record, path="MEMORY.md", now=NOW, dry_run=False)
    document = MemoryDocument.objects.get()
    append_fact(document, VERIFIED, by=By(AGENT, NOW))
    curate_facts(document, [Fact.objects.get(text=VERIFIED).pk], by=By(PERSON, NOW), verified=True)
    document.refresh_from_db()
    return document


def is_verified(text: str) -> bool:
    return Fact.objects.get(text=text, died=None).last_verified_at is not None


@pytest.mark.parametrize(("actor", "verified"), [(PERSON, True), (Actor("command", "cli"), True), (AGENT, False)])
def test_a_fact_that_a_person_adds_too_is_verified(document, actor, verified):
    append_fact(document, f"{VERIFIED} today", by=By(AGENT, NOW))

    append_fact(document, f"{VERIFIED} today.", by=By(actor, LATER))

    assert is_verified(f"{VERIFIED} today") == verified
    assert is_verified("The lamp 1 is in room 1") is False


@pytest.mark.parametrize("actor", [AGENT, Actor("agent", "beta"), Actor("run", "run 1")])
def test_an_agents_new_words_are_not_verified(document, actor):
    text = document.head.content.replace(VERIFIED, REWORDED)

    write_text(document, text, base_number=document.head.number, by=By(actor, LATER), reason="", is_own_fact=True)

    assert not is_verified(REWORDED)


def test_a_files_new_words_are_not_verified(document):
    record = DocumentRecord("MEMORY.md", document.head.content)
    import_document(workspace=document.workspace, record=record, path="MEMORY.md", now=LATER, dry_run=False)
    record = DocumentRecord("MEMORY.md", document.head.content.replace(VERIFIED, REWORDED))

    import_document(workspace=document.workspace, record=record, path="MEMORY.md", now=LATER, dry_run=False)

    assert not is_verified(REWORDED)


def test_other_changes_of_an_agent_leave_a_fact_verified(document):
    text = document.head.content.replace("- The lamp 3 is in room 3\n", "") + "- The lamp 99 is in room 99\n"

    write_text(document, text, base_number=document.head.number, by=By(AGENT, LATER), reason="")

    assert is_verified(VERIFIED)


def test_a_persons_new_words_stay_verified(document):
    fact = Fact.objects.get(text=VERIFIED)

    edit_fact(fact, text=REWORDED, category="", section=fact.section, by=By(PERSON, LATER))

    assert is_verified(REWORDED)


def state_of(text: str) -> tuple:
    fact = Fact.objects.get(text=text, died=None)
    return fact.pk, fact.last_verified_at, fact.corrected_id, fact.accepted_id, fact.pinned


@pytest.mark.parametrize("actor", [AGENT, PERSON])
@pytest.mark.parametrize("is_verified_since", [True, False])
@pytest.mark.parametrize("is_changed_since", [True, False])
def test_undoing_a_revision_restores_what_people_decided_about_the_words(
    document, actor, is_verified_since, is_changed_since
):
    before = state_of(VERIFIED)
    text = document.head.content.replace(VERIFIED, REWORDED)
    write_text(document, text, base_number=document.head.number, by=By(actor, LATER), reason="", is_own_fact=True)
    document.refresh_from_db()
    made = document.head.number
    if is_verified_since:
        curate_facts(document, [Fact.objects.get(text=REWORDED).pk], by=By(PERSON, LATER), verified=True)
    if is_changed_since:
        append_fact(document, "The cellar is wet", by=By(AGENT, LATER))
    since = state_of(REWORDED)

    undone = undo_revision(document, made, by=By(PERSON, LATER))

    assert state_of(VERIFIED) == before
    undo_revision(document, undone.revision.number, by=By(PERSON, LATER))
    assert state_of(REWORDED) == since


def test_restoring_an_earlier_revision_restores_what_people_decided_about_the_words(document):
    before, number = state_of(VERIFIED), document.head.number
    for words in (REWORDED, f"{REWORDED} now"):
        text = document.head.content.replace(VERIFIED, words)
        head = document.head.number
        write_text(document, text, base_number=head, by=By(AGENT, LATER), reason="", is_own_fact=True)
        document.refresh_from_db()

    restore_revision(document, number, by=By(PERSON, LATER))

    assert state_of(VERIFIED) == before


def test_words_that_nobody_saw_are_not_verified_after_undo(document):
    fact = Fact.objects.get(text="The lamp 3 is in room 3")
    edit_fact(fact, text="The lamp 3 is in room 33", category="", section=fact.section, by=By(PERSON, LATER))
    curate_facts(document, [fact.pk], by=By(PERSON, LATER), verified=True)
    document.refresh_from_db()

    undo_revision(document, document.head.number, by=By(PERSON, LATER))

    assert not is_verified("The lamp 3 is in room 3")


@pytest.mark.parametrize("count", [2, 40])
def test_redoing_verifications_reads_once_what_was_reworded(document, count):
    facts = list(Fact.objects.order_by("line")[:count].values_list("pk", flat=True))
    by = By(PERSON, LATER)
    undoing = undo_edit(edit_rows(document.workspace, "facts", "verify", facts, by=by), by=by)

    with CaptureQueriesContext(connection) as queries:
        undo_edit(undoing, by=by)

    assert Fact.objects.filter(last_verified_at=LATER).count() == count
    assert len([one for one in queries if '"object_id" IN (SELECT' in one["sql"]]) == 1
    assert len([one for one in queries if one["sql"].startswith("SELECT")]) < 20


@pytest.mark.parametrize("count", [2, 40])
def test_redoing_verifications_by_hygiene_reads_once_what_was_reworded(document, count):
    facts = Fact.objects.filter(pk__in=list(Fact.objects.order_by("line")[:count].values_list("pk", flat=True)))
    facts.update(review_by=NOW.date() - timedelta(days=1), last_verified_at=None)
    scan(document.workspace)
    by = By(PERSON, LATER)
    stale = Concern.objects.filter(kind="stale").values_list("pk", flat=True)
    undoing = undo_resolution(verify(document.workspace, list(stale), by=by), by=by)

    with CaptureQueriesContext(connection) as queries:
        undo_resolution(undoing, by=by)

    assert Fact.objects.filter(last_verified_at=LATER).count() == count
    assert len([one for one in queries if '"object_id" IN (SELECT' in one["sql"]]) == 1
    assert len([one for one in queries if one["sql"].startswith("SELECT")]) < 40
