"""What a decision about a held change of the agent's file leaves: in the hub, and for the file."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from knowledge_app.models import HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.held_changes import hunks_of
from knowledge_app.services.documents.outside_edits import hold_emptied
from knowledge_app.services.documents.pending_writes import (
    bytes_are_kept,
    may_write_over,
    record_written,
    unwritten_documents,
)
from memoryhub.lib.layouts.records import DocumentRecord
from memoryhub.runs.review import approve, reject
from sessions_app.models import AuditRecord
from sessions_app.services.audit import By
from tests.hub import PERSON, raises_code
from tests.knowledge_app.test_outside_edits import FACTS, NOW, edit, head, take

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
LINES = FACTS.split("\n")
PROPOSED = "\n".join([*LINES[:5], *LINES[9:15], *LINES[18:]])  # two parts are gone


@pytest.fixture
def change(workspace) -> HeldChange:
    take(workspace, FACTS)
    take(workspace, PROPOSED)
    return HeldChange.objects.get()


def document() -> MemoryDocument:
    return MemoryDocument.objects.select_related("head", "synced_revision", "written_over").get()


def test_the_file_is_written_only_where_it_differs_and_nobody_has_to_decide(change):
    edit(FACTS + "\n- one more")
    assert list(unwritten_documents()) == []

    reject(change, by=BY)

    assert list(unwritten_documents()) == [document()]


def test_a_change_that_is_approved_whole_leaves_nothing_to_write(change):
    approve(change, by=BY)

    assert head() == PROPOSED
    assert list(unwritten_documents()) == []


def test_a_part_that_is_approved_alone_goes_to_the_file_whose_text_is_kept(change):
    assert len(hunks_of(change)) == 2

    approve(change, by=BY, hunks=[1])

    assert head() == "\n".join([*LINES[:15], *LINES[18:]])
    assert document().synced_revision.content == PROPOSED
    assert list(unwritten_documents()) == [document()]


def test_a_text_that_is_rejected_is_kept_and_the_hubs_text_goes_to_the_file(change):
    reject(change, by=BY)

    assert head() == FACTS
    assert document().synced_revision.content == PROPOSED
    assert list(unwritten_documents()) == [document()]


def test_an_unknown_part_decides_nothing(change):
    with raises_code("cannot_decide"):
        approve(change, by=BY, hunks=[0, 2])

    assert head() == FACTS
    assert HeldChange.objects.get().status == HeldChange.Status.PENDING


def test_what_was_edited_meanwhile_is_in_the_approved_text(change):
    edit(FACTS.replace("about a", "about ants"))

    approve(change, by=BY)

    assert head() == PROPOSED.replace("about a", "about ants")


def test_an_edit_of_the_same_lines_keeps_the_change_for_a_person(change):
    edited = FACTS.replace("about f", "about foxes")
    edit(edited)

    with raises_code("cannot_decide"):
        approve(change, by=BY)

    assert head() == edited
    assert HeldChange.objects.get().status == HeldChange.Status.PENDING
    assert not AuditRecord.objects.filter(action="change.approved").exists()


def test_a_decision_names_who_made_it_and_why(change):
    user = User.objects.create_user("olga")

    reject(change, by=BY, user=user, reason="cut short")

    decided = HeldChange.objects.get()
    assert (decided.status, decided.decided_by, decided.decided_at) == ("rejected", user, NOW)
    assert decided.decision_reason == "cut short"
    assert AuditRecord.objects.get(action="change.rejected").actor_name == PERSON.name


def test_only_the_text_that_the_hub_has_seen_is_written_over(change):
    def may(content: str) -> bool:
        return may_write_over(document(), DocumentRecord("MEMORY.md", content))

    assert may(FACTS)
    assert not may(FACTS + "\n- by the agent a moment ago")
    assert not may("")


def test_an_emptied_file_is_filled_again_once_a_person_said_so(workspace):
    take(workspace, FACTS)
    hold_emptied(document(), NOW)
    empty = DocumentRecord("MEMORY.md", "")
    assert not may_write_over(document(), empty)

    reject(HeldChange.objects.get(), by=BY)

    assert may_write_over(document(), empty)


@pytest.mark.parametrize(
    ("raw", "are_kept"), [(b"- a\n", True), (b"- a\r\n", True), (b"- a\r\n\r", False), (b"", True)]
)
def test_bytes_that_could_not_be_made_again_count_as_lost(workspace, raw, are_kept):
    take(workspace, "- a\n")

    assert bytes_are_kept(document(), "- a\n", raw) == are_kept


def test_the_bytes_of_an_approved_file_are_kept(workspace):
    take(workspace, FACTS)
    raw = PROPOSED.replace("\n", "\r\n").encode() + b"\r"
    take(workspace, PROPOSED, raw)

    approve(HeldChange.objects.get(), by=BY)

    assert bytes(document().head.raw) == raw
    assert bytes_are_kept(document(), PROPOSED, raw)


def test_a_writing_that_a_sync_overtook_is_not_noted(workspace):
    take(workspace, FACTS)
    stale = document()
    edit(FACTS + "\n- one more")
    newest = MemoryRevision.objects.latest("number")
    assert record_written(document(), newest, path="memory/MEMORY.md", by=BY)

    assert not record_written(stale, stale.head, path="memory/MEMORY.md", by=BY)
    assert document().synced_revision == newest
    assert AuditRecord.objects.filter(action="document.written").count() == 1


def test_a_finding_is_ranked_by_what_the_content_check_found_and_not_by_words_in_it():
    role = "1 new line imitates a system message or a role of the conversation"
    html = "2 new lines: each contains HTML"
    size = "is longer than the program of the secret instructions accepts"

    change = HeldChange(flags=[size, html, role, "review was requested"])

    assert change.findings == [role, html, size]
    assert change.is_grave
    assert not HeldChange(flags=[size, html]).is_grave
