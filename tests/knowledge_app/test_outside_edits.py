from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from knowledge_app.models import Fact, HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.outside_edits import import_document, plan_outside_edit
from knowledge_app.services.documents.revisions import StaleBase, revise_document
from memoryhub.lib.layouts.records import DocumentRecord
from memoryhub.runs.review import approve, reject
from sessions_app.models import AuditRecord
from sessions_app.services.audit import Actor, By
from tests.hub import PERSON, raises_code, recorded_supersessions

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 4, 1, tzinfo=UTC)
ANA = Actor("person", "ana")
FACTS = "# Facts\n" + "\n".join(f"- fact number {i} is about {word}" for i, word in enumerate("abcdefghijklmnopqrst"))


def take(workspace, content, raw=None):
    record = DocumentRecord("MEMORY.md", content, raw)
    return import_document(workspace=workspace, record=record, path="memory/MEMORY.md", now=NOW, dry_run=False)


def head() -> str:
    return MemoryDocument.objects.get().head.content


def edit(content: str) -> None:
    document = MemoryDocument.objects.get()
    revise_document(document, content, base=document.head, by=By(ANA, NOW), reason="edited")


def test_the_first_text_becomes_the_first_revision_with_its_facts(workspace):
    tally = take(workspace, FACTS)

    assert +tally.added == {"documents": 1}
    assert MemoryRevision.objects.get().number == 1
    assert Fact.objects.filter(died=None).count() == 20


def test_the_same_text_again_changes_nothing(workspace):
    take(workspace, FACTS)

    assert +take(workspace, FACTS).unchanged == {"documents": 1}
    assert MemoryRevision.objects.count() == 1


def test_a_change_in_the_file_is_taken(workspace):
    take(workspace, FACTS)

    tally = take(workspace, FACTS.replace("number 3", "number three"))

    assert +tally.updated == {"documents": 1}
    assert "number three" in head()
    assert Fact.objects.filter(died=None).count() == 20
    assert not Fact.objects.exclude(died=None).exists()


def test_losing_more_than_a_tenth_of_the_facts_is_held(workspace):
    take(workspace, FACTS)
    halved = "\n".join(FACTS.split("\n")[:11])

    first, second = take(workspace, halved), take(workspace, halved)

    assert head() == FACTS
    assert [problem.outcome for problem in first.problems + second.problems] == ["held", "held"]
    assert HeldChange.objects.get().flags == ["removes 10 of 20 facts"]


def test_an_emptied_file_keeps_the_text(workspace):
    take(workspace, FACTS)

    tally = take(workspace, "\n")

    assert [problem.outcome for problem in tally.problems] == ["held"]
    assert head() == FACTS


def test_changes_of_both_sides_in_different_lines_are_merged(workspace):
    take(workspace, FACTS)
    edit(FACTS.replace("about a", "about ants"))

    tally = take(workspace, FACTS.replace("about t", "about trees"))
    again = take(workspace, FACTS.replace("about t", "about trees"))

    assert "ants" in head()
    assert "trees" in head()
    assert [problem.outcome for problem in tally.problems] == ["noted"]
    assert +again.unchanged == {"documents": 1}


def test_the_same_line_changed_on_both_sides_is_held_with_all_three_texts(workspace):
    take(workspace, FACTS)
    ours, theirs = FACTS.replace("about c", "about cats"), FACTS.replace("about c", "about cows")
    edit(ours)

    take(workspace, theirs)

    change = HeldChange.objects.get()
    assert (change.base.content, change.ours.content, change.proposed) == (FACTS, ours, theirs)
    assert head() == ours


def test_approving_takes_the_held_text_and_rejecting_leaves_the_document(workspace):
    user = User.objects.create_user("ana")
    take(workspace, FACTS)
    halved = "\n".join(FACTS.split("\n")[:11])
    take(workspace, halved)

    approve(HeldChange.objects.get(), by=By(PERSON, NOW), user=user)

    assert head() == halved
    assert +take(workspace, halved).unchanged == {"documents": 1}
    with raises_code("cannot_decide"):
        reject(HeldChange.objects.get(), by=By(PERSON, NOW), user=user)


def test_a_rejected_text_is_not_held_again(workspace):
    user = User.objects.create_user("ana")
    take(workspace, FACTS)
    halved = "\n".join(FACTS.split("\n")[:11])
    take(workspace, halved)
    reject(HeldChange.objects.get(), by=By(PERSON, NOW), user=user)

    take(workspace, halved)

    assert head() == FACTS
    assert HeldChange.objects.count() == 1


def test_a_newer_text_of_the_file_takes_the_place_of_an_older_held_one(workspace):
    take(workspace, FACTS)
    take(workspace, "\n".join(FACTS.split("\n")[:11]))

    take(workspace, "\n".join(FACTS.split("\n")[:6]))

    assert sorted(HeldChange.objects.values_list("status", flat=True)) == ["pending", "superseded"]
    assert len(recorded_supersessions()) == 1


def test_a_stale_base_is_refused_and_leaves_no_trace(workspace):
    take(workspace, FACTS)
    document = MemoryDocument.objects.get()
    first = document.head
    edit(FACTS + "\n- more")
    before = AuditRecord.objects.count()

    with pytest.raises((StaleBase, IntegrityError)), transaction.atomic():
        revise_document(document, "late", base=first, by=By(ANA, NOW), reason="late")

    assert AuditRecord.objects.count() == before
    assert MemoryRevision.objects.count() == 2


def test_every_revision_has_its_audit_record(workspace):
    take(workspace, FACTS)
    edit(FACTS + "\n- more")

    ids = {str(pk) for pk in MemoryRevision.objects.values_list("pk", flat=True)}
    assert set(AuditRecord.objects.filter(object_kind="revision").values_list("object_id", flat=True)) == ids


def test_revisions_are_never_rewritten(workspace):
    take(workspace, FACTS)

    with pytest.raises(IntegrityError), transaction.atomic():
        MemoryRevision.objects.update(content="x")


@pytest.mark.parametrize(
    ("base", "head_text", "disk", "verdict"),
    [
        (None, None, "", "take"),
        ("a", "a", "a", "unchanged"),
        ("a", "b", "a", "unchanged"),
        ("a", "b", "b", "agreed"),
        ("a", "a", " \n", "empty"),
        ("a", "a", "c", "take"),
        ("a", "b", "c", "hold"),
        ("a\nx\nb", "a2\nx\nb", "a\nx\nb2", "merge"),
    ],
)
def test_three_texts_decide_what_happens(base, head_text, disk, verdict):
    assert plan_outside_edit(base, head_text, disk).verdict == verdict
