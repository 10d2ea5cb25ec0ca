from datetime import timedelta

import pytest
from django.db.models.functions import Now

from memoryhub.integrity import check_memory
from memoryhub.lib.errors import Conflict, Invalid
from memoryhub.models import Process
from memoryhub.processes import this_process
from memoryhub.runs.compress import approve_held, draft, request_if_due
from memoryhub.runs.executing import execute
from sessions_app.models import AuditRecord, Entry, Run, Session, Summary
from sessions_app.services import runs
from sessions_app.services.audit import By
from sessions_app.services.compressing.compression import is_due, plan_compression, undo_compression
from sessions_app.services.lifecycle import clear_session
from sessions_app.services.runs import (
    MAX_FAILURES,
    RunNotFitting,
    cancel_run,
    claim_run,
    dismiss_run,
    fail_run,
    free_stuck_runs,
    request_run,
    retry_run,
)
from tests.hub import NOW, PERSON, add, compress, open_at, talk, turn

pytestmark = pytest.mark.django_db


def test_old_entries_are_folded_and_the_recent_window_stays(session):
    run = compress(session)

    session.refresh_from_db()
    summary = Summary.objects.get()
    assert run.status == "done"
    assert (summary.first_position, summary.last_position, summary.entry_count) == (0, 27, 28)
    assert session.active_entry_count == 12
    assert session.active_tokens + session.summary_tokens < session.total_tokens
    assert Entry.objects.get(position=27).summary_id == summary.pk
    assert Entry.objects.get(position=28).role == "user"
    assert summary.original_token_count == sum(summary.entries.values_list("token_count", flat=True))
    assert (summary.starts_at, summary.method) == (NOW, "heuristic")
    assert not check_memory().broken


def test_the_heuristic_tells_counts_requests_tools_and_errors(workspace):
    session = open_at(workspace)
    add(session, [*turn(0, words=2), {"role": "tool", "tool_call_id": "c9", "content": "Error: no such file"}])
    talk(session, 4, first=1)

    compress(session, keep=16, minimum=1)

    text = Summary.objects.get().content
    assert "1 user message" in text
    assert 'First: "request 0 please look please look"' in text
    assert "Tools used: shell" in text
    assert "1 error encountered" in text


@pytest.mark.parametrize("keep", range(1, 12))
def test_no_tool_group_is_parted(workspace, keep):
    session = open_at(workspace)
    talk(session, 3, tools=3)

    plan = plan_compression(session, keep=keep, minimum=1)

    folded = {entry.position for entry in plan.entries}
    for entry in Entry.objects.exclude(tool_call_id=""):
        call = Entry.objects.get(position=entry.position - 1)
        assert (entry.position in folded) == (call.position in folded)


def test_with_too_few_entries_nothing_is_folded_and_it_says_why(workspace):
    session = open_at(workspace)
    talk(session, 3)

    plan = plan_compression(session)

    assert not plan.entries
    assert (
        plan.reason
        == "12 active entries; the last 10 are kept, in whole tool groups. 1 is left to summarise; 5 are needed."
    )


@pytest.mark.parametrize(("limit", "value"), [("max_tokens", 100), ("max_entries", 20)])
def test_it_is_due_beyond_a_limit(session, limit, value):
    assert not is_due(session)

    setattr(session.workspace, limit, value)

    assert is_due(session)


def test_due_work_is_asked_for_once(session):
    session.workspace.max_entries = 20

    first, again = request_if_due(session, NOW), request_if_due(session, NOW)

    assert first is not None
    assert again is None


@pytest.mark.slow
def test_summaries_that_pile_up_are_folded_too(session):
    for number in range(9):
        talk(session, 4, first=10 + 4 * number)
        compress(Session.objects.get())

    run = compress(Session.objects.get())

    top = Summary.objects.filter(parent=None)
    parent = Summary.objects.get(run=run)
    assert (parent.children.count(), top.count()) == (8, 2)
    assert (parent.first_position, parent.entry_count) == (0, 0)
    assert not check_memory().broken


def test_undo_puts_everything_back(session):
    before = Session.objects.values().get()
    run = compress(session)

    undo_compression(run, by=By(PERSON, NOW))

    assert Session.objects.values().get() == before
    assert not Summary.objects.exists()
    assert Run.objects.get().status == "undone"
    assert "user message" in Run.objects.get().proposal["text"]
    assert not check_memory().broken


def test_a_compression_without_a_summary_has_nothing_to_undo(session):
    run, _ = request_run(session, "compression", options={}, by=By(PERSON, NOW))
    Run.objects.update(status="done")

    with pytest.raises(RunNotFitting, match="nothing to undo"):
        undo_compression(run, by=By(PERSON, NOW))


def test_after_an_undo_automatic_compression_rests(session):
    session.workspace.max_entries = 20
    run = request_if_due(session, NOW)
    undo_compression(execute(run.pk, now=lambda: NOW), by=By(PERSON, NOW))

    assert request_if_due(Session.objects.get(), NOW) is None


@pytest.mark.slow
@pytest.mark.postgres
def test_a_folded_summary_is_not_undone_alone(session):
    first = compress(session)
    for number in range(9):
        talk(session, 4, first=10 + 4 * number)
        compress(Session.objects.get())
    compress(Session.objects.get())

    with pytest.raises(RunNotFitting, match="Undo run"):
        undo_compression(first, by=By(PERSON, NOW))


def test_a_held_summary_counts_once_it_is_approved(session):
    run = compress(session, hold=True)
    assert run.status == "held"
    assert not Summary.objects.exists()

    approve_held(run, owner=this_process(), by=By(PERSON, NOW))

    assert Summary.objects.get().content == run.proposal["text"]
    assert Run.objects.get().status == "done"
    assert not check_memory().broken


def test_a_held_summary_of_a_cleared_session_is_refused(session):
    run = compress(session, hold=True)
    clear_session(session, by=By(PERSON, NOW))

    with pytest.raises(Conflict) as caught:
        approve_held(run, owner=this_process(), by=By(PERSON, NOW))
    assert caught.value.code in ("plan_stale", "run_not_fitting")
    assert not Summary.objects.exists()


def test_a_late_reply_after_a_cancel_changes_nothing(session):
    run, _ = request_run(session, "compression", options={}, by=By(PERSON, NOW))
    claimed = claim_run(run.pk, owner="x", now=NOW)
    cancel_run(claimed, by=By(PERSON, NOW))

    from memoryhub.runs.compress import carry_out
    from sessions_app.services.runs import LeaseLost

    with pytest.raises(LeaseLost):
        carry_out(claimed, now=lambda: NOW)
    assert not Summary.objects.exists()


def test_a_session_runs_one_at_a_time(session):
    first, _ = request_run(session, "compression", options={}, by=By(PERSON, NOW))
    assert claim_run(first.pk, owner="x", now=NOW) is not None

    second, _ = request_run(session, "compression", options={}, by=By(PERSON, NOW))

    assert second.pk != first.pk
    assert claim_run(second.pk, owner="y", now=NOW) is None


def test_a_run_of_a_dead_worker_is_taken_over_and_the_dead_one_is_fenced_off(session):
    run, _ = request_run(session, "compression", options={}, by=By(PERSON, NOW))
    host, _, _ = this_process().rsplit(":", 2)
    late = claim_run(run.pk, owner=f"{host}:999999:abc", now=NOW)

    freed = free_stuck_runs(NOW)

    from memoryhub.runs.compress import carry_out
    from sessions_app.services.runs import LeaseLost

    assert [item.pk for item in freed] == [run.pk]
    assert execute(run.pk, now=lambda: NOW).status == "done"
    with pytest.raises(LeaseLost):
        carry_out(late, now=lambda: NOW)
    assert Summary.objects.count() == 1


def test_a_run_whose_lease_has_passed_is_freed_on_any_host(session):
    run, _ = request_run(session, "compression", options={}, by=By(PERSON, NOW))
    claim_run(run.pk, owner="elsewhere:1:abc", now=NOW)
    assert free_stuck_runs(NOW) == []

    Run.objects.update(lease_expires_at=NOW)

    assert [item.pk for item in free_stuck_runs(NOW)] == [run.pk]


def test_a_run_of_a_machine_that_is_gone_is_freed_before_its_lease_ends(session):
    run, _ = request_run(session, "compression", options={}, by=By(PERSON, NOW))
    Process.objects.create(name="elsewhere:1:abc", kind="worker", host="elsewhere", pid=1, seen_at=Now())
    claim_run(run.pk, owner="elsewhere:1:abc", now=NOW)
    assert free_stuck_runs(NOW) == []

    Process.objects.update(seen_at=Now() - timedelta(minutes=1))

    assert [item.pk for item in free_stuck_runs(NOW)] == [run.pk]


def failing(session, times: int) -> Run:

    run, _ = request_run(session, "compression", options={}, by=By(PERSON, NOW))
    for _ in range(times):
        Run.objects.update(not_before=NOW)
        fail_run(
            claim_run(run.pk, owner="x", now=NOW),
            Invalid("It said nothing.", code="bad_reply"),
            now=NOW,
            is_transient=True,
        )
    return Run.objects.get(pk=run.pk)


def test_a_failed_attempt_waits_before_the_next(session):
    run = failing(session, 1)

    assert (run.status, run.attempt_count, run.error) == ("queued", 1, "It said nothing.")
    assert run.not_before > NOW
    assert claim_run(run.pk, owner="x", now=NOW) is None


def test_a_failure_is_not_recorded_without_its_audit_record(session, monkeypatch):
    def fail(*_args: object, **_values: object) -> None:
        raise OSError("disk full")

    run, _ = request_run(session, "compression", options={}, by=By(PERSON, NOW))
    claimed = claim_run(run.pk, owner="x", now=NOW)
    monkeypatch.setattr(runs, "_audit", fail)

    with pytest.raises(OSError, match="disk full"):
        fail_run(claimed, Invalid("It said nothing.", code="bad_reply"), now=NOW, is_transient=True)

    assert Run.objects.values_list("status", "attempt_count").get() == ("running", 0)


def test_after_three_failures_it_is_parked_and_others_go_on(session, workspace):
    run = failing(session, MAX_FAILURES)
    other = open_at(workspace, "cli:other")
    talk(other, 10)

    assert run.status == "parked"
    assert compress(other).status == "done"


def test_a_parked_run_has_three_ways_on(session):
    run = retry_run(failing(session, MAX_FAILURES), by=By(PERSON, NOW))
    assert (run.status, run.attempt_count) == ("queued", 0)

    Run.objects.update(status="parked")
    run = retry_run(run, by=By(PERSON, NOW), method="heuristic")
    assert run.options["method"] == "heuristic"

    Run.objects.update(status="parked")
    run = dismiss_run(run, note="not worth it", by=By(PERSON, NOW))
    assert run.status == "failed"
    assert "olga: not worth it" in run.error


def test_every_step_of_a_run_is_told(session):
    compress(session)

    told = AuditRecord.objects.filter(object_kind__in=("run", "summary")).order_by("id")
    actions = list(told.values_list("action", flat=True))

    assert actions == ["run.requested", "run.started", "run.finished", "session.compressed"]


def test_clearing_after_an_archive_is_one_step(session):
    run = compress(session, keep=0, minimum=1, clear_after=True)

    session.refresh_from_db()
    assert run.status == "done"
    assert (session.epoch, session.next_position, session.active_entry_count) == (1, 0, 0)
    assert (session.entry_count, Summary.objects.get().entry_count) == (40, 40)
    assert not check_memory().broken


def test_a_dry_run_shows_and_changes_nothing(session):
    before = Session.objects.values().get()

    shown = draft(session)

    assert (len(shown.plan.entries), shown.method) == (28, "heuristic")
    assert "10 user" not in shown.text
    assert Session.objects.values().get() == before
    assert not Run.objects.exists()


def test_appends_go_on_below_a_summary(session):
    compress(session)
    appended = add(session, turn(99))

    assert appended.first_position == 40
    assert not check_memory().broken
