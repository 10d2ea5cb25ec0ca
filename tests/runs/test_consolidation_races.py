"""What a person decides while a model is asked outlasts the reply."""

from __future__ import annotations

from threading import Event
from time import sleep

import pytest

from knowledge_app.models import Fact, HeldChange, MemoryDocument
from knowledge_app.services.documents import consolidation
from knowledge_app.services.documents.consolidation import apply_proposal, plan_consolidation
from knowledge_app.services.documents.consolidation_guard import Proposal
from knowledge_app.services.documents.editing import curate_facts, edit_fact, remove_facts
from memoryhub.forgetting.erasure import ErasureRequest, apply_forget, plan_forget
from memoryhub.lib.errors import MemoryHubError
from sessions_app.models import Run, Session
from sessions_app.services.audit import By
from sessions_app.services.runs import claim_run, request_run
from tests.hub import NOW, PERSON, head, open_at, talk
from tests.races import WAIT, at_once
from tests.runs.consolidations import FACTS, memory, write, write_as_person

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
LINE, NEW = FACTS[6], "the gate is painted green on Mondays"
MOVED = f"{memory(*FACTS[:6], *FACTS[7:], NEW)}\n## Places\n\n- {LINE}\n"
REWORDED = memory(*FACTS[:6], f"{LINE} since May", *FACTS[7:], NEW)
KEPT = memory(*FACTS, NEW)
DROPPED = memory(*FACTS[:6], *FACTS[7:], NEW)


@pytest.fixture
def session(workspace) -> Session:
    workspace.memory_window = 4
    workspace.save()
    write(workspace, memory(*FACTS))
    talk(open_at(workspace), 3)
    return Session.objects.get()


def asked(session: Session):
    """Return a run that a worker has claimed, and its plan."""
    run, _ = request_run(session, Run.Kind.CONSOLIDATION, options={}, by=BY)
    claimed = claim_run(run.pk, owner="w", now=NOW)
    assert claimed is not None
    return claimed, plan_consolidation(Session.objects.get(), archive_all=True)


def fact() -> Fact:
    return Fact.objects.get(text=LINE, died=None)


def withdraw() -> None:
    remove_facts(MemoryDocument.objects.get(), [fact().pk], by=BY)


def correct() -> None:
    edit_fact(fact(), text="no longer so, the seven have left", category="", section=fact().section, by=BY)


def pin() -> None:
    curate_facts(MemoryDocument.objects.get(), [fact().pk], by=BY, pinned=True)


def forget() -> None:
    workspace, erasure = Session.objects.get().workspace, ErasureRequest("phrase", (LINE,))
    apply_forget(workspace, erasure, expected=plan_forget(workspace, erasure).total, reason="", by=BY)


def reasons() -> str:
    return " ".join(HeldChange.objects.filter(status="pending").values_list("reason", flat=True))


@pytest.mark.parametrize("decide", [withdraw, correct])
@pytest.mark.parametrize("reply", [MOVED, REWORDED, KEPT, DROPPED], ids=["moved", "reworded", "kept", "dropped"])
def test_a_fact_that_a_person_removed_or_corrected_does_not_return(session, decide, reply):
    run, plan = asked(session)
    decide()
    decided = head()

    apply_proposal(run, plan, Proposal(reply, "They talked."), now=NOW)

    assert LINE not in head()
    assert ("the seven have left" in head()) == ("the seven have left" in decided)
    is_named = "earlier" in reasons() or "in the meantime" in reasons()
    assert is_named == (reply in (MOVED, REWORDED) or (reply == DROPPED and decide is correct))


@pytest.mark.parametrize("decide", [withdraw, correct])
def test_a_fact_that_a_person_removed_before_is_held_and_others_are_committed(session, decide):
    decide()
    decided = head()
    run, plan = asked(session)

    apply_proposal(run, plan, Proposal(f"{decided}- {LINE.upper()}!\n- {NEW}\n", "They talked."), now=NOW)

    assert head() == f"{decided}- {NEW}\n"
    assert "1 new fact was removed or corrected earlier" in reasons()


def test_a_fact_that_a_person_put_back_may_be_moved(session):
    withdraw()
    write_as_person(memory(*FACTS))
    run, plan = asked(session)

    apply_proposal(run, plan, Proposal(MOVED, "They talked."), now=NOW)

    assert head() == MOVED
    assert reasons() == ""


@pytest.mark.parametrize("reply", [REWORDED, DROPPED], ids=["reworded", "dropped"])
def test_a_fact_that_a_person_pinned_stays(session, reply):
    run, plan = asked(session)
    pin()

    apply_proposal(run, plan, Proposal(reply, "They talked."), now=NOW)

    assert f"- {LINE}\n" in head()
    assert "pinned" in reasons()


@pytest.mark.parametrize("reply", [MOVED, REWORDED, KEPT], ids=["moved", "reworded", "kept"])
def test_what_a_person_forgot_is_not_written(session, reply):
    run, plan = asked(session)
    forget()

    with pytest.raises(MemoryHubError):
        apply_proposal(run, plan, Proposal(reply, f"They talked about {LINE}."), now=NOW)

    assert LINE not in head()
    assert Run.objects.get().status == "queued"


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("decide", [withdraw, correct, pin, forget])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_decision_and_a_commit_at_once(session, monkeypatch, decide, is_first):
    run, plan = asked(session)
    locking, has_locked = consolidation.lock_document, Event()

    def pausing(pk):
        document = locking(pk)
        has_locked.set()
        sleep(WAIT)
        return document

    def second():
        if not is_first:
            has_locked.wait(WAIT)
        decide()

    monkeypatch.setattr(consolidation, "lock_document", pausing)
    results = at_once(lambda: apply_proposal(run, plan, Proposal(REWORDED, "They talked."), now=NOW), second)

    errors = [one.code for one in results if isinstance(one, MemoryHubError)]
    assert errors in ([], ["lease_lost"], ["no_such_fact"], ["forget_changed"])
    if errors == ["forget_changed"]:  # the person is asked to look at the preview again
        forget()
    text, document = head(), MemoryDocument.objects.get()
    assert {fact.line for fact in Fact.objects.filter(document=document, died=None)} <= set(
        range(text.count("\n") + 2)
    )
    if decide is pin:
        assert Fact.objects.filter(pinned=True, died=None).exists()
    else:
        assert f"- {LINE}\n" not in text
