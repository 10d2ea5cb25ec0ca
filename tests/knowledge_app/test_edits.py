from datetime import timedelta

import pytest

from knowledge_app.models import CachedResponse, EditedRow, KnowledgeEntry, Observation
from knowledge_app.services.rows import undoable_edits
from knowledge_app.services.rows.importing import import_knowledge
from knowledge_app.services.rows.undoable_edits import carry_out_edit, edit_rows, undo_edit
from memoryhub.lib.layouts.grip import content_id
from memoryhub.lib.layouts.records import KnowledgeRecord
from memoryhub.runs.executing import execute, undo_run
from sessions_app.models import AuditRecord, Run, Workspace
from sessions_app.services.audit import By
from sessions_app.services.runs import LeaseLost, RunNotFitting, cancel_run, claim_run
from tests.hub import NOW, PERSON, figures, raises_code

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
AS_BEFORE = {"category": "learned_fact", "corrected": {}}


def knowledge(workspace, content="likes tea", category="learned_fact", **values):
    identity = content_id(category, content)
    return KnowledgeEntry.objects.create(
        workspace=workspace, content_id=identity, identity=identity, category=category, content=content, **values
    )


def recategorise(workspace, rows, category="user_preference"):
    return edit_rows(workspace, "knowledge", "assign", [row.pk for row in rows], values={"category": category}, by=BY)


def test_an_edit_changes_rows_and_tells_who_did_it(workspace):
    row = knowledge(workspace)

    run = recategorise(workspace, [row])

    row.refresh_from_db()
    assert (run.status, figures(run)) == ("done", {"changed": 1, "passed_over": 0})
    assert row.category == "user_preference"
    assert row.identity == content_id("user_preference", "likes tea")
    assert row.history.order_by("-history_id")[0].history_change_reason == "olga: changed"
    told = AuditRecord.objects.get(action="rows.edited")
    assert (told.actor_name, told.text) == ("olga", "1 knowledge entry changed")


def test_an_undone_edit_leaves_rows_as_they_were_and_can_be_done_again(workspace):
    row = knowledge(workspace, tags=["a"])
    run = recategorise(workspace, [row])

    undoing = undo_edit(run, by=BY)
    row.refresh_from_db()
    assert (row.category, row.identity, row.corrected) == ("learned_fact", row.content_id, {})
    assert Run.objects.get(pk=run.pk).status == "undone"

    undo_edit(undoing, by=BY)
    row.refresh_from_db()
    assert row.category == "user_preference"
    assert Run.objects.get(pk=run.pk).status == "done"


@pytest.mark.parametrize("values", [AS_BEFORE, dict(reversed(AS_BEFORE.items()))])
def test_what_undoing_puts_back_is_no_correction_in_whatever_order_it_comes(workspace, values):
    row = knowledge(workspace)
    recategorise(workspace, [row])
    row.refresh_from_db()

    undoable_edits.apply_values(row, values)

    assert row.corrected == {}


def test_the_reason_of_an_edit_is_in_the_rows_history(workspace):
    row = knowledge(workspace)

    edit_rows(workspace, "knowledge", "verify", [row.pk], reason="asked Vera", by=BY)

    assert row.history.order_by("-history_id")[0].history_change_reason == "olga: asked Vera"


def test_undoing_leaves_what_was_changed_since(workspace):
    rows = [knowledge(workspace), knowledge(workspace, "likes cats")]
    run = recategorise(workspace, rows)
    recategorise(workspace, rows[:1], "error_pattern")

    undoing = undo_edit(run, by=BY)

    assert figures(undoing) == {"changed": 1, "passed_over": 1}
    assert [row.category for row in KnowledgeEntry.objects.order_by("id")] == ["error_pattern", "learned_fact"]


def test_an_edit_can_be_undone_once(workspace):
    run = recategorise(workspace, [knowledge(workspace)])
    undo_run(run, by=BY)

    with pytest.raises(RunNotFitting):
        undo_run(Run.objects.get(pk=run.pk), by=BY)


def test_merging_keeps_the_first_with_what_the_others_add(workspace):
    keep = knowledge(workspace, tags=["a"], access_count=2)
    other = knowledge(workspace, "likes  tea!", tags=["b"], access_count=3, source="cli")

    run = edit_rows(workspace, "knowledge", "merge", [[keep.pk, other.pk]], by=BY)

    keep.refresh_from_db()
    other.refresh_from_db()
    assert (keep.tags, keep.access_count, keep.source) == (["a", "b"], 5, "cli")
    assert other.withdrawn_reason == f"merged into {keep.pk}"
    undo_edit(run, by=BY)
    keep.refresh_from_db()
    other.refresh_from_db()
    assert (keep.tags, keep.access_count, other.withdrawn_at) == (["a"], 2, None)


def test_a_removed_row_comes_back_with_its_number(workspace):
    row = CachedResponse.objects.create(workspace=workspace, key="k", response="42", created_at=NOW)
    run = edit_rows(workspace, "cached", "remove", [row.pk], by=BY)
    assert not CachedResponse.objects.exists()

    undo_edit(run, by=BY)

    back = CachedResponse.objects.get(pk=row.pk)
    assert (back.key, back.response, back.created_at) == ("k", "42", NOW)


def test_rows_of_another_workspace_are_passed_over(workspace):
    foreign = knowledge(Workspace.objects.create(slug="other", name="Other"))

    run = recategorise(workspace, [foreign])

    foreign.refresh_from_db()
    assert foreign.category == "learned_fact"
    assert figures(run) == {"changed": 0, "passed_over": 1}


def test_nothing_chosen_is_no_edit(workspace):
    with raises_code("nothing_chosen"):
        recategorise(workspace, [])


def test_a_large_edit_waits_for_a_worker_and_goes_on_where_it_was_cut_off(workspace, monkeypatch):
    monkeypatch.setattr(undoable_edits, "AT_ONCE", 2)
    monkeypatch.setattr(undoable_edits, "BATCH_ROWS", 2)
    rows = [knowledge(workspace, f"fact {number}") for number in range(5)]
    run = recategorise(workspace, rows)
    assert run.status == "queued"

    claimed = claim_run(run.pk, owner="a worker that dies", now=NOW)
    batches = undoable_edits._batches(claimed.options["units"], 2)
    undoable_edits._change_batch(claimed, next(batches), 2, 5, NOW)
    assert EditedRow.objects.count() == 2
    Run.objects.filter(pk=run.pk).update(status="queued")

    done = execute(run.pk, now=lambda: NOW)
    assert (done.status, done.proposal["changed"], done.steps_done) == ("done", 5, 5)
    assert set(KnowledgeEntry.objects.values_list("category", flat=True)) == {"user_preference"}


def test_a_cancelled_edit_stops(workspace, monkeypatch):
    monkeypatch.setattr(undoable_edits, "AT_ONCE", 0)
    run = recategorise(workspace, [knowledge(workspace)])
    claimed = claim_run(run.pk, owner="w", now=NOW)
    cancel_run(run, by=BY)

    with pytest.raises(LeaseLost):
        carry_out_edit(claimed, now=NOW)

    assert KnowledgeEntry.objects.get().category == "learned_fact"


def test_observations_are_withdrawn_with_a_reason_and_come_back(workspace):
    row = Observation.objects.create(workspace=workspace, uid="u", category="finding", content="c")

    edit_rows(workspace, "observations", "withdraw", [row.pk], values={"reason": "wrong"}, by=BY)
    row.refresh_from_db()
    assert (row.withdrawn_at, row.withdrawn_reason) == (NOW, "wrong")

    edit_rows(workspace, "observations", "return", [row.pk], by=BY)
    row.refresh_from_db()
    assert (row.withdrawn_at, row.withdrawn_reason) == (None, "")


def take(workspace, content="likes tea", category="learned_fact", source=""):
    record = KnowledgeRecord(
        content_id=content_id("learned_fact", "likes tea"),
        category=category,
        content=content,
        source=source,
        tags=[],
        access_count=0,
        created_at=None,
        accessed_at=None,
        extra={},
    )
    return import_knowledge(workspace, [record], path="knowledge.json", now=NOW + timedelta(days=1), dry_run=False)


def test_an_import_leaves_alone_what_a_person_corrected(workspace):
    take(workspace)
    recategorise(workspace, KnowledgeEntry.objects.all())

    tally = take(workspace)

    assert +tally.unchanged == {"knowledge": 1}
    assert KnowledgeEntry.objects.get().category == "user_preference"


def test_where_the_file_changes_a_corrected_field_the_hub_stays_and_says_so_once(workspace):
    take(workspace)
    recategorise(workspace, KnowledgeEntry.objects.all())

    tally = take(workspace, category="error_pattern", source="cli")

    row = KnowledgeEntry.objects.get()
    assert (row.category, row.source) == ("user_preference", "cli")
    assert [problem.action for problem in tally.problems] == ["the hub's value stays"]
    assert not take(workspace, category="error_pattern", source="cli").problems


def test_a_correction_that_the_file_took_over_is_none_any_more(workspace):
    take(workspace)
    recategorise(workspace, KnowledgeEntry.objects.all())

    take(workspace, category="user_preference")

    assert KnowledgeEntry.objects.get().corrected == {}


def test_a_cancelled_edit_is_undone_as_far_as_it_came(workspace, monkeypatch):
    monkeypatch.setattr(undoable_edits, "AT_ONCE", 0)
    monkeypatch.setattr(undoable_edits, "BATCH_ROWS", 1)
    run = recategorise(workspace, [knowledge(workspace), knowledge(workspace, "likes cats")])
    claimed = claim_run(run.pk, owner="w", now=NOW)
    undoable_edits._change_batch(claimed, [[KnowledgeEntry.objects.order_by("id")[0].pk]], 1, 2, NOW)
    cancel_run(run, by=BY)

    undoing = undo_edit(Run.objects.get(pk=run.pk), by=BY)
    execute(undoing.pk, now=lambda: NOW)

    assert set(KnowledgeEntry.objects.values_list("category", flat=True)) == {"learned_fact"}


def test_undoing_passes_over_a_key_that_is_taken_again(workspace):
    row = CachedResponse.objects.create(workspace=workspace, key="k", response="old")
    run = edit_rows(workspace, "cached", "remove", [row.pk], by=BY)
    CachedResponse.objects.create(workspace=workspace, key="k", response="new")

    assert figures(undo_edit(run, by=BY)) == {"changed": 0, "passed_over": 1}
    assert CachedResponse.objects.get().response == "new"


def test_an_undone_merge_keeps_what_was_counted_since(workspace):
    keep = knowledge(workspace, access_count=2)
    other = knowledge(workspace, "likes tea!", tags=["b"], access_count=3)
    run = edit_rows(workspace, "knowledge", "merge", [[keep.pk, other.pk]], by=BY)
    KnowledgeEntry.objects.filter(pk=keep.pk).update(access_count=6)

    undo_edit(run, by=BY)

    keep.refresh_from_db()
    assert (keep.tags, keep.access_count) == ([], 3)


def test_counts_stop_where_their_columns_end(workspace):
    rows = [knowledge(workspace, text, access_count=2**31 - 1) for text in ("likes tea", "likes tea!")]

    edit_rows(workspace, "knowledge", "merge", [[row.pk for row in rows]], by=BY)

    assert KnowledgeEntry.objects.get(pk=rows[0].pk).access_count == 2**31 - 1


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "compression"},
        {"status": "queued"},
        {"status": "running"},
        {"status": "undone"},
        {"options": {"table": "sessions", "action": "delete"}},
        {"options": {"table": "sessions", "action": "undo", "of_action": "compress"}},
    ],
)
def test_only_finished_edits_are_undone(workspace, values):
    given = {"kind": "edit", "status": "done", "options": {"table": "knowledge", "action": "assign"}} | values
    run = Run.objects.create(workspace=workspace, **given)
    EditedRow.objects.create(run=run, table="knowledge", object_id=1, before={}, after={})

    with pytest.raises(RunNotFitting):
        undo_edit(run, by=BY)

    assert Run.objects.get().status == given["status"]


def test_an_edit_cancelled_before_its_first_row_is_not_undone(workspace, monkeypatch):
    monkeypatch.setattr(undoable_edits, "AT_ONCE", 0)
    run = cancel_run(recategorise(workspace, [knowledge(workspace)]), by=BY)

    with pytest.raises(RunNotFitting):
        undo_edit(run, by=BY)


def test_an_edit_that_breaks_is_parked(workspace, monkeypatch):
    monkeypatch.setattr(undoable_edits, "carry_out_edit", lambda *_args, **_values: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        recategorise(workspace, [knowledge(workspace)])

    run = Run.objects.get()
    assert (run.status, run.error_code) == ("parked", "edit_broken")


def test_nothing_is_merged_into_a_row_that_is_gone(workspace):
    gone = knowledge(Workspace.objects.create(slug="other", name="Other"))
    rest = [knowledge(workspace, text) for text in ("likes tea!", "likes  tea")]

    run = edit_rows(workspace, "knowledge", "merge", [[gone.pk, *(row.pk for row in rest)]], by=BY)

    assert figures(run) == {"changed": 0, "passed_over": 3}
    assert not KnowledgeEntry.objects.exclude(withdrawn_at=None).exists()


def test_a_removed_row_comes_back_beside_the_same_key_of_another_workspace(workspace):
    row = CachedResponse.objects.create(workspace=workspace, key="k", response="old")
    run = edit_rows(workspace, "cached", "remove", [row.pk], by=BY)
    CachedResponse.objects.create(
        workspace=Workspace.objects.create(slug="other", name="Other"), key="k", response="new"
    )

    assert figures(undo_edit(run, by=BY)) == {"changed": 1, "passed_over": 0}


def test_a_row_that_has_the_value_already_is_passed_over(workspace):
    run = recategorise(workspace, [knowledge(workspace)], "learned_fact")

    assert figures(run) == {"changed": 0, "passed_over": 1}
    assert not EditedRow.objects.exists()


def test_an_undone_merge_keeps_the_time_of_a_later_use(workspace):
    keep = knowledge(workspace, accessed_at=NOW - timedelta(days=2))
    other = knowledge(workspace, "likes tea!", accessed_at=NOW - timedelta(days=1))
    run = edit_rows(workspace, "knowledge", "merge", [[keep.pk, other.pk]], by=BY)
    KnowledgeEntry.objects.filter(pk=keep.pk).update(accessed_at=NOW)

    undo_edit(run, by=BY)

    keep.refresh_from_db()
    assert keep.accessed_at == NOW
