"""Changes that wait for review and become equal when words are forgotten."""

from __future__ import annotations

import pytest

from knowledge_app.models import HeldChange
from knowledge_app.services.documents.proposals import propose_text
from knowledge_app.services.documents.revisions import open_document, revise_document
from memoryhub.forgetting.erasure import ErasureRequest, write_receipt
from memoryhub.forgetting.reapply import reapply_receipts
from memoryhub.integrity import check_memory
from sessions_app.models import Run
from sessions_app.services.audit import Actor, By
from tests.forgetting.test_forgetting import forget, holding
from tests.forgetting.test_renamed_sources import receipt_of
from tests.hub import NOW, PERSON, open_at

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
BASE = "# Team\n\n- tea at four\n- no meetings\n"


def proposals(workspace) -> list[HeldChange]:
    document = open_document(workspace, "MEMORY.md")
    revise_document(document, BASE, base=None, by=BY, reason="first")
    by = By(Actor("agent", "bot"), NOW)
    texts = [f"{BASE}- Anna Quicksilver moved to {town}\n" for town in ("Bergen", "Trondheim")]
    return [propose_text(document, text, base_number=None, by=by, reason="news") for text in texts]


def states(changes: list[HeldChange]) -> list[str]:
    return [HeldChange.objects.get(pk=change.pk).status for change in changes]


def test_the_later_of_two_proposals_that_become_equal_is_superseded(workspace):
    changes = proposals(workspace)

    forget(workspace, "person", "Anna Quicksilver")

    assert states(changes) == ["pending", "superseded"]
    assert {change.proposed for change in HeldChange.objects.all()} == {f"{BASE}- [forgotten]\n"}
    assert holding("quicksilver") == set()
    assert check_memory().broken == []


def test_a_restore_erases_them_again(workspace):
    changes = proposals(workspace)
    receipt = write_receipt(workspace, ErasureRequest("person", ("Anna Quicksilver",)), reason="", by=BY)

    assert reapply_receipts([receipt_of(receipt)], by=BY) == []

    assert states(changes) == ["pending", "superseded"]
    assert holding("quicksilver") == set()


def test_a_consolidation_whose_text_becomes_that_of_an_earlier_change_is_cancelled(workspace):
    changes = proposals(workspace)
    run = Run.objects.create(workspace=workspace, session=open_at(workspace), kind="consolidation", status="held")
    HeldChange.objects.filter(pk=changes[1].pk).update(run=run)

    forget(workspace, "person", "Anna Quicksilver")

    run.refresh_from_db()
    assert (states(changes), run.status) == (["pending", "superseded"], "cancelled")


def test_decided_changes_keep_their_decision(workspace):
    changes = proposals(workspace)
    HeldChange.objects.filter(pk=changes[1].pk).update(status="rejected")

    forget(workspace, "person", "Anna Quicksilver")

    assert states(changes) == ["pending", "rejected"]
