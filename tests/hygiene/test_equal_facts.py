"""Undoing and redoing actions on findings about facts with equal words."""

import pytest

from knowledge_app.models import Concern, Fact
from knowledge_app.services.documents.editing import bring_back, remove_facts, save_text
from knowledge_app.services.documents.revisions import lock_document
from memoryhub.hygiene.resolution import keep, withdraw
from memoryhub.runs.executing import undo_run
from tests.hygiene.test_resolution import SAME, fresh, pks
from tests.hygiene.test_scanning import BY, TOKEN, facts, scan

pytestmark = pytest.mark.django_db


def living():
    return list(Fact.objects.filter(died=None).order_by("line").values_list("pk", flat=True))


def pairs():
    return list(Concern.objects.filter(kind="duplicate").values_list("object_id", "other_id"))


def test_equal_facts_withdrawn_together_return_and_go_together(workspace):
    facts(workspace, f"use {TOKEN}", f"use {TOKEN}")
    scan(workspace)
    run = withdraw(workspace, pks(kind="secret"), by=BY)

    for count in (2, 0, 2, 0, 2):
        run = undo_run(fresh(run), by=BY)
        assert len(living()) == count

    secrets = Concern.objects.filter(kind="secret").order_by("object_id")
    assert list(secrets.values_list("object_id", flat=True)) == living()
    assert [set(pair) for pair in pairs()] == [set(living())]


def test_redoing_keeps_an_equal_fact_that_was_added_elsewhere(workspace):
    first, _ = facts(workspace, SAME, SAME)
    scan(workspace)
    run = keep(workspace, pks(kind="duplicate"), other=False, by=BY)
    remove_facts(first.document, [first.pk], by=BY)
    document = lock_document(first.document_id)
    text = f"{document.head.content}\n# Elsewhere\n- {SAME}\n"
    save_text(document, text, base_number=document.head.number, by=BY, reason="added")
    elsewhere = living()

    undoing = undo_run(fresh(run), by=BY)
    assert len(living()) == 2
    undo_run(fresh(undoing), by=BY)

    assert living() == elsewhere


def test_redoing_keeps_a_fact_that_somebody_restored(workspace):
    facts(workspace, f"use {TOKEN}")
    scan(workspace)
    run = withdraw(workspace, pks(), by=BY)
    bring_back(Fact.objects.get(), by=BY)
    restored = living()

    undo_run(fresh(undo_run(fresh(run), by=BY)), by=BY)

    assert living() == restored


@pytest.mark.parametrize("is_first", [True, False])
def test_findings_point_at_different_facts_if_somebody_restored_one(workspace, is_first):
    both = facts(workspace, f"use {TOKEN}", f"use {TOKEN}")
    scan(workspace)
    run = withdraw(workspace, pks(kind="secret"), by=BY)
    bring_back(Fact.objects.get(pk=both[0 if is_first else 1].pk), by=BY)

    undo_run(fresh(run), by=BY)

    assert len(living()) == 2
    assert [set(pair) for pair in pairs()] == [set(living())]
    assert set(Concern.objects.filter(kind="secret").values_list("object_id", flat=True)) == set(living())


def test_no_finding_is_about_a_fact_and_itself(workspace):
    first, second = facts(workspace, f"use {TOKEN}", f"use {TOKEN}")
    scan(workspace)
    runs = [withdraw(workspace, pks(kind="secret", object_id=fact.pk), by=BY) for fact in (first, second)]
    bring_back(Fact.objects.get(pk=second.pk), by=BY)

    for run in runs:
        undo_run(fresh(run), by=BY)

    assert len(living()) == 2
    assert [pair for pair in pairs() if pair[0] == pair[1]] == []
