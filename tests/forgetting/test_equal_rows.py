"""Rows that become equal when their words are forgotten, in every table that has a text only once."""

from __future__ import annotations

import pytest
from django.db.models import CharField, Model, TextField, UniqueConstraint

from knowledge_app.models import HeldChange, MemoryDocument
from knowledge_app.services.documents.proposals import propose_text
from knowledge_app.services.documents.revisions import open_document, revise_document
from memoryhub.forgetting.erasure import ErasureRequest, write_receipt
from memoryhub.forgetting.reapply import reapply_receipts
from memoryhub.forgetting.rows import _models
from memoryhub.forgetting.rules import text_columns
from memoryhub.integrity import check_memory
from memoryhub.lib.database.fields import JSONTextField
from sessions_app.models import Run
from sessions_app.services.audit import Actor, By, open_guard
from tests.forgetting.test_forgetting import forget, holding, make
from tests.forgetting.test_renamed_sources import receipt_of
from tests.hub import NOW, PERSON, open_at, recorded_supersessions

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
BASE = "# Team\n\n- tea at four\n- no meetings\n"
WORDS = ("Quicksilver", "QuickSilver", "QUICKSILVER")


def unique_columns(model: type[Model]) -> set[str]:
    """Return the text columns of a table's unique constraints, hashes too."""
    fields = {name for one in model._meta.constraints if isinstance(one, UniqueConstraint) for name in one.fields}
    fields |= {column.name for column in model._meta.concrete_fields if column.unique}
    return {name for name in fields if isinstance(model._meta.get_field(name), CharField | TextField)}


def texts(model: type[Model]) -> set[str]:
    """Return the columns of a table that an erasure searches and that have room for a word."""
    plain = [column for column in text_columns(model)[0] if not isinstance(column, JSONTextField)]
    return {column.name for column in plain if (column.max_length or 100) > len(WORDS[0])}


def affected() -> list[type[Model]]:
    """Return the tables with a unique column whose value an erasure changes."""
    return [model for model in _models() if unique_columns(model) & {*texts(model), "proposed_hash"}]


def plant(model: type[Model], workspace, session, word: str) -> None:
    """Make a row with a word in every text column that is free to hold it."""
    row = make(model, workspace, session)
    hashes = dict.fromkeys(unique_columns(model) - texts(model), f"row {row.pk}")
    model._base_manager.filter(pk=row.pk).update(**hashes | dict.fromkeys(texts(model), word))


@pytest.mark.parametrize("kind", ["phrase", "person"])
@pytest.mark.parametrize("model", affected(), ids=lambda one: one.__name__)
def test_rows_that_become_equal_are_erased_as_often_as_they_come(workspace, model, kind):
    session = open_at(workspace)
    for _ in range(2):
        with open_guard("planting"):
            for word in WORDS:
                plant(model, workspace, session, word)

        forget(workspace, kind, "quicksilver")

        assert not [place for place in holding("quicksilver") if model.__name__ in place]


def test_the_name_of_an_erased_row_is_not_one_that_an_agent_has_taken(workspace):
    document = open_document(workspace, "quicksilver.md")
    open_document(workspace, f"forgotten-{document.pk}.md")

    forget(workspace, "phrase", "quicksilver")

    assert MemoryDocument.objects.filter(name__startswith="forgotten-").count() == 2


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
    assert recorded_supersessions() == [changes[1].pk]
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
