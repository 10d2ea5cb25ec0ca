"""Undoing a decision about a held change restores the document and lets the change wait again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from knowledge_app.models import Fact, HeldChange, MemoryDocument
from knowledge_app.services.documents.pending_writes import unwritten_documents
from knowledge_app.services.documents.undone_decisions import undo_decision
from memoryhub.runs.review import approve, decide_parts, reject
from sessions_app.services.audit import By
from tests.hub import PERSON, raises_code, recorded_supersessions
from tests.knowledge_app.test_held_changes import PROPOSED
from tests.knowledge_app.test_outside_edits import FACTS, NOW, edit, head, take

pytestmark = pytest.mark.django_db
BY, LATER = By(PERSON, NOW + timedelta(minutes=1)), By(PERSON, NOW + timedelta(minutes=2))


@pytest.fixture
def change(workspace) -> HeldChange:
    take(workspace, FACTS)
    take(workspace, PROPOSED)
    return HeldChange.objects.get()


def state() -> tuple:
    document = MemoryDocument.objects.select_related("head", "synced_revision").get()
    facts = list(Fact.objects.filter(died=None).order_by("line").values_list("pk", "text", "line", "pinned"))
    waiting = list(HeldChange.objects.filter(status="pending").values_list("pk", "proposed", "decided_at"))
    return document.head.content, document.synced_revision.content, facts, waiting, list(unwritten_documents())


@pytest.mark.parametrize(
    "decide",
    [
        lambda change: approve(change, by=BY),
        lambda change: approve(change, by=BY, hunks=[1]),
        lambda change: reject(change, by=BY),
        lambda change: decide_parts(change, accepted=[0], rejected=[], by=BY),
        lambda change: decide_parts(change, accepted=[], rejected=[0], by=BY),
    ],
    ids=["approve", "approve-part", "reject", "part-waits", "rejected-part"],
)
def test_undo_restores_what_was_before_the_decision(change, decide):
    Fact.objects.filter(line__gt=5).update(pinned=True)
    before = state()
    decide(change)
    change.refresh_from_db()
    assert state() != before

    undo_decision(change, by=LATER)

    assert state() == before
    with raises_code("cannot_undo"):
        undo_decision(change, by=LATER)


def test_a_later_edit_refuses_the_undo(change):
    approve(change, by=BY)
    edit(PROPOSED + "- one more\n")

    with raises_code("cannot_undo", match="Revision 3 has changed MEMORY.md since"):
        undo_decision(HeldChange.objects.get(), by=LATER)

    assert head() == PROPOSED + "- one more\n"
    assert HeldChange.objects.get().status == "approved"


def test_parts_that_were_decided_since_refuse_the_undo(change):
    decide_parts(change, accepted=[0], rejected=[], by=BY)
    reject(HeldChange.objects.get(status="pending"), by=LATER)

    with raises_code("cannot_undo", match="Other parts"):
        undo_decision(change, by=LATER)


def test_the_parts_that_still_wait_are_superseded_by_the_whole_change(change):
    decide_parts(change, accepted=[0], rejected=[], by=BY)
    rest = HeldChange.objects.get(status="pending")

    undo_decision(change, by=LATER)

    assert recorded_supersessions() == [rest.pk]


def test_a_file_that_got_the_approved_text_gets_the_former_one_back(change):
    approve(change, by=BY, hunks=[1])
    document = MemoryDocument.objects.get()
    MemoryDocument.objects.update(synced_revision=document.head)

    undo_decision(change, by=LATER)

    assert head() == FACTS
    assert HeldChange.objects.get().file_restored_at == LATER.at
    assert list(unwritten_documents()) == [document]
