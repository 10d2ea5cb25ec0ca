from datetime import date, timedelta

import pytest

from knowledge_app.models import CachedResponse, Concern, Fact, KeyValue, KnowledgeEntry
from knowledge_app.services.documents.editing import bring_back, edit_fact
from knowledge_app.services.documents.revisions import lock_document, revise_document
from memoryhub.hygiene import resolution
from memoryhub.hygiene.resolution import dismiss, keep, reopen, review, undo_resolution, verify, withdraw
from memoryhub.hygiene.rows import Row, shown_text
from memoryhub.runs.executing import undo_run
from sessions_app.models import AuditRecord, Run, Workspace
from sessions_app.services.audit import By
from sessions_app.services.runs import RunNotFitting
from tests.hub import AGENT, NOW, add, open_at, raises_code
from tests.hygiene.test_scanning import BY, OLD, TOKEN, facts, knowledge, observation, scan

pytestmark = pytest.mark.django_db
SAME = "The label service runs in Porto"


def pks(**values):
    return list(Concern.objects.filter(status="open", **values).order_by("id").values_list("pk", flat=True))


def statuses():
    return list(Concern.objects.order_by("id").values_list("status", flat=True))


def fresh(run):
    return Run.objects.select_related("workspace").get(pk=run.pk)


def test_dismissing_can_be_undone_and_repeated(workspace):
    knowledge(workspace, f"use {TOKEN}")
    scan(workspace)

    run = dismiss(workspace, pks(), by=BY)
    assert statuses() == ["dismissed"]
    assert fresh(run).options["along"]["words"] == "1 finding dismissed"
    undo_run(fresh(run), by=BY)

    assert statuses() == ["open"]


def test_a_dismissed_concern_can_be_reopened(workspace):
    knowledge(workspace, f"use {TOKEN}")
    scan(workspace)
    chosen = pks()
    dismiss(workspace, chosen, by=BY)

    reopen(workspace, chosen, by=BY)

    assert statuses() == ["open"]


def test_rows_of_each_table_are_withdrawn_and_restored(workspace):
    (fact,) = facts(workspace, f"fact of {TOKEN}")
    Fact.objects.update(pinned=True, last_verified_at=NOW, review_by=date(2026, 9, 1))
    entry, finding = knowledge(workspace, f"entry of {TOKEN}"), observation(workspace, f"finding of {TOKEN}")
    value = KeyValue.objects.create(workspace=workspace, key="k", value=TOKEN)
    cached = CachedResponse.objects.create(workspace=workspace, key="c", response=TOKEN)
    scan(workspace)

    run = withdraw(workspace, pks(kind="secret"), by=BY)

    assert Fact.objects.get(pk=fact.pk).died is not None
    assert TOKEN not in fact.document.__class__.objects.get().head.content
    for row in (entry, finding, value):
        row.refresh_from_db()
        assert row.withdrawn_at == NOW
    assert not CachedResponse.objects.exists()
    assert set(statuses()) == {"settled"}

    undo_resolution(fresh(run), by=BY)

    back = Fact.objects.get(died=None)
    assert back.text == fact.text
    assert (back.pinned, back.last_verified_at, back.review_by) == (True, NOW, date(2026, 9, 1))
    assert Concern.objects.filter(table="facts", object_id=back.pk).exists()
    for row in (entry, finding, value):
        row.refresh_from_db()
        assert row.withdrawn_at is None
    assert CachedResponse.objects.get().pk == cached.pk
    assert set(statuses()) == {"open"}


def test_withdrawing_resolves_all_concerns_about_the_row(workspace):
    row = knowledge(workspace, f"{SAME} with {TOKEN}", created_at=OLD)
    observation(workspace, f"{SAME} with {TOKEN}")
    scan(workspace)
    assert len(pks()) == 4

    withdraw(workspace, pks(kind="stale"), by=BY)

    assert pks() == pks(table="observations", kind="secret")
    assert len(pks()) == 1
    row.refresh_from_db()
    assert row.withdrawn_reason == "hygiene"


def test_messages_cannot_be_withdrawn(workspace):
    add(open_at(workspace), [{"role": "user", "content": TOKEN}])
    scan(workspace)

    with raises_code("not_withdrawable"):
        withdraw(workspace, pks(), by=BY)

    assert statuses() == ["open"]


def test_duplicates_in_one_table_are_merged(workspace):
    first, second = knowledge(workspace, SAME, access_count=2), knowledge(workspace, f"{SAME}!", access_count=3)
    scan(workspace)

    run = keep(workspace, pks(), other=False, by=BY)

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.access_count, first.withdrawn_at) == (5, None)
    assert second.withdrawn_reason == f"merged into {first.pk}"
    assert statuses() == ["settled"]
    undo_resolution(fresh(run), by=BY)
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.access_count, second.withdrawn_at) == (2, None)


def test_either_duplicate_can_be_kept_and_across_tables_one_is_withdrawn(workspace):
    (fact,) = facts(workspace, SAME)
    entry = knowledge(workspace, SAME)
    scan(workspace)

    keep(workspace, pks(), other=True, by=BY)

    assert not Fact.objects.filter(died=None).exists()
    entry.refresh_from_db()
    assert entry.withdrawn_at is None
    assert Fact.objects.get().pk == fact.pk


def test_three_duplicates_become_one(workspace):
    rows = [knowledge(workspace, SAME + "!" * number, access_count=1) for number in range(3)]
    scan(workspace)

    run = keep(workspace, pks(), other=False, by=BY)

    assert list(
        KnowledgeEntry.objects.filter(withdrawn_at=None).order_by("pk").values_list("pk", "access_count")
    ) == [(rows[0].pk, 3)]
    undo_resolution(fresh(run), by=BY)
    assert KnowledgeEntry.objects.filter(withdrawn_at=None, access_count=1).count() == 3


def test_the_wrong_side_of_a_contradiction_is_withdrawn_not_merged(workspace):
    first = knowledge(workspace, "database pool limit is 40", access_count=2)
    second = knowledge(workspace, "database pool limit is 60", access_count=3)
    scan(workspace)

    keep(workspace, pks(), other=True, by=BY)

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.withdrawn_reason, second.access_count, second.withdrawn_at) == ("hygiene", 3, None)


def test_a_chain_of_contradictions_keeps_one_of_each_pair(workspace):
    for number in (40, 50, 60):
        knowledge(workspace, f"database pool limit is {number}")
    scan(workspace)

    keep(workspace, pks(), other=False, by=BY)

    assert KnowledgeEntry.objects.filter(withdrawn_at=None).count() == 2
    assert statuses() == ["settled", "settled"]


def test_verifying_can_be_undone(workspace):
    (fact,) = facts(workspace, "Ines likes tea")
    Fact.objects.update(review_by=date(2026, 3, 1))
    entry = knowledge(workspace, "Bo likes coffee", created_at=OLD)
    row = observation(workspace, "Cy likes milk", recorded_at=OLD)
    scan(workspace)

    run = verify(workspace, pks(), by=BY)

    for kept in (fact, entry, row):
        kept.refresh_from_db()
        assert kept.last_verified_at == NOW
    assert set(statuses()) == {"settled"}
    scan(workspace)
    assert pks() == []

    undo_resolution(fresh(run), by=BY)
    for kept in (fact, entry, row):
        kept.refresh_from_db()
        assert kept.last_verified_at is None
    assert len(pks()) == 3
    assert AuditRecord.objects.filter(text="Earlier dates restored on 1 fact").count() == 1


def test_a_later_review_date_resolves_until_then(workspace):
    (fact,) = facts(workspace, "Ines likes tea")
    Fact.objects.update(review_by=date(2026, 3, 1))
    entry = knowledge(workspace, "Bo likes coffee", review_by=date(2026, 3, 1))
    scan(workspace)

    run = review(workspace, pks(), day=date(2026, 9, 1), by=BY)

    fact.refresh_from_db()
    entry.refresh_from_db()
    assert (fact.review_by, entry.review_by) == (date(2026, 9, 1), date(2026, 9, 1))
    assert pks() == []
    undo_resolution(fresh(run), by=BY)
    fact.refresh_from_db()
    entry.refresh_from_db()
    assert (fact.review_by, entry.review_by) == (date(2026, 3, 1), date(2026, 3, 1))


def test_undoing_keeps_dates_changed_since(workspace):
    (fact,) = facts(workspace, "Ines likes tea")
    Fact.objects.update(review_by=date(2026, 3, 1))
    scan(workspace)
    run = verify(workspace, pks(), by=BY)
    Fact.objects.update(last_verified_at=NOW + timedelta(days=1))

    undo_resolution(fresh(run), by=BY)

    fact.refresh_from_db()
    assert fact.last_verified_at == NOW + timedelta(days=1)


def test_withdrawing_a_fact_can_be_undone_and_redone_in_turn(workspace):
    (fact,) = facts(workspace, f"fact of {TOKEN}")
    scan(workspace)
    run = withdraw(workspace, pks(), by=BY)

    for is_there in (True, False, True, False):
        run = undo_run(fresh(run), by=BY)

        living = Fact.objects.filter(died=None, text=fact.text)
        assert (living.count(), statuses()) == ((1, ["open"]) if is_there else (0, ["settled"]))


def test_redoing_keeps_a_fact_that_changed_since(workspace):
    facts(workspace, f"fact of {TOKEN}")
    scan(workspace)
    undoing = undo_run(fresh(withdraw(workspace, pks(), by=BY)), by=BY)
    edit_fact(Fact.objects.get(died=None), text="fact without a secret", category="", section="Team", by=BY)

    undo_run(fresh(undoing), by=BY)

    assert Fact.objects.get(died=None).text == "fact without a secret"


def test_a_fact_that_somebody_restored_is_not_added_again(workspace):
    facts(workspace, f"fact of {TOKEN}")
    scan(workspace)
    run = withdraw(workspace, pks(), by=BY)
    bring_back(Fact.objects.get(), by=BY)

    undo_run(fresh(run), by=BY)

    assert Fact.objects.filter(died=None).count() == 1
    assert Concern.objects.get(status="open").object_id == Fact.objects.get(died=None).pk


def test_of_two_equal_facts_the_removed_one_returns(workspace):
    facts(workspace, SAME, SAME)
    scan(workspace)
    run = keep(workspace, pks(kind="duplicate"), other=False, by=BY)
    assert Fact.objects.filter(died=None).count() == 1

    undo_run(fresh(run), by=BY)

    assert Fact.objects.filter(died=None, text=SAME).count() == 2


def test_verifying_can_be_undone_and_redone_for_the_words_that_a_person_saw(workspace):
    fact, other = facts(workspace, "fact of one", "fact of another one")
    Fact.objects.update(review_by=OLD.date())
    scan(workspace)
    run = undo_run(fresh(verify(workspace, pks(kind="stale"), by=BY)), by=BY)
    document, later = lock_document(fact.document_id), By(AGENT, BY.at + timedelta(hours=1))
    text = document.head.content.replace("another one", "another two")
    revise_document(document, text, base=document.head, by=later, reason="edited")

    for verified in (True, False):
        run = undo_run(fresh(run), by=later)

        dates = dict(Fact.objects.values_list("pk", "last_verified_at"))
        assert dates == {fact.pk: BY.at if verified else None, other.pk: None}


def test_a_verification_made_during_an_undo_is_kept(workspace, monkeypatch):
    facts(workspace, "Ines likes tea")
    Fact.objects.update(review_by=OLD.date(), last_verified_at=OLD - timedelta(days=1))
    scan(workspace)
    run, later = verify(workspace, pks(), by=BY), BY.at + timedelta(hours=1)

    def verify_now(*_):
        Fact.objects.update(last_verified_at=later)
        return set()

    monkeypatch.setattr(resolution, "reworded_since", verify_now)

    undo_run(fresh(run), by=BY)

    assert Fact.objects.get().last_verified_at == later


def test_an_action_can_be_undone_only_once(workspace):
    facts(workspace, f"fact of {TOKEN}")
    scan(workspace)
    run = withdraw(workspace, pks(), by=BY)
    undo_resolution(fresh(run), by=BY)

    with pytest.raises(RunNotFitting):
        undo_resolution(fresh(run), by=BY)

    assert Fact.objects.filter(died=None).count() == 1


def test_foreign_and_resolved_concerns_are_ignored(workspace):
    other = Workspace.objects.create(slug="other", name="Other")
    knowledge(other, f"use {TOKEN}")
    scan(other)

    with raises_code("nothing_chosen"):
        withdraw(workspace, pks(), by=BY)
    with raises_code("nothing_chosen"):
        verify(other, pks(), by=BY)
    with raises_code("nothing_chosen"):
        keep(other, pks(), other=True, by=BY)

    assert KnowledgeEntry.objects.get().withdrawn_at is None


def test_too_many_at_once_are_refused(workspace, monkeypatch):
    monkeypatch.setattr(resolution, "MAX_AT_ONCE", 1)
    monkeypatch.setattr(resolution, "MAX_MARKED", 1)

    with raises_code("too_many"):
        dismiss(workspace, [1, 2], by=BY)


def test_no_audit_record_of_an_action_shows_the_secret(workspace):
    facts(workspace, f"fact of {TOKEN}")
    observation(workspace, f"finding of {TOKEN}")
    KeyValue.objects.create(workspace=workspace, key="k", value=TOKEN)
    scan(workspace)

    undo_resolution(fresh(withdraw(workspace, pks(kind="secret"), by=BY)), by=BY)

    assert AuditRecord.objects.count() > 5
    assert TOKEN not in repr(list(AuditRecord.objects.values()))
    assert TOKEN not in repr(list(Run.objects.values("options", "proposal", "error", "stage")))


@pytest.mark.parametrize(
    ("row", "kind", "shown"),
    [
        (Row("facts", 1, f"use {TOKEN} here"), "secret", "use ••• here"),
        (Row("facts", 1, f"use {TOKEN} here"), "stale", "use ••• here"),
        (Row("key_values", 1, "opensesame", name="db_password"), "secret", "db_password: •••"),
        (Row("key_values", 1, "blue", name="colour"), "", "colour: blue"),
        (Row("facts", 1, f"mail ana@example.com, use {TOKEN}"), "personal", "mail ana@example.com, use •••"),
    ],
)
def test_secrets_are_masked_in_rows(row, kind, shown):
    assert shown_text(row, kind) == shown


def test_a_long_row_is_cut_to_the_relevant_part():
    text = f"{'a ' * 5_000}{TOKEN} {'b ' * 5_000} ana@example.com {'c ' * 5_000}"

    assert "•••" in shown_text(Row("entries", 1, text), "secret")
    assert "ana@example.com" in shown_text(Row("entries", 1, text), "personal")
    assert shown_text(Row("entries", 1, text)).startswith("a a ")
    assert len(shown_text(Row("entries", 1, text), "secret")) <= 402


def test_a_truncated_secret_is_not_shown():
    text = f"{'a ' * 29_990}{TOKEN}"

    assert TOKEN[:6] not in shown_text(Row("entries", 1, text), "secret")
