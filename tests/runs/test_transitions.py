"""Which state a run must be in for each action, and who may carry it out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from memoryhub.lib.errors import Busy
from memoryhub.processes import this_process
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.audit import By
from sessions_app.services.runs import (
    MAX_FAILURES,
    MAX_TAKEOVERS,
    LeaseLost,
    RunNotFitting,
    cancel_run,
    claim_held_run,
    claim_run,
    dismiss_run,
    due_runs,
    fail_run,
    finish_run,
    free_stuck_runs,
    is_resting,
    postpone_run,
    renew_lease,
    request_run,
    retry_run,
    tokens_spent,
)
from tests.hub import NOW, PERSON, add, open_at, turn

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
LATER = NOW + timedelta(hours=1)
GONE = f"{this_process().rsplit(':', 2)[0]}:999999:gone"
ELSEWHERE = "another-host:4711:0"
ACTIONS = {
    "approve": (lambda run: claim_held_run(run, owner="w", by=BY), {"held"}),
    "cancel": (lambda run: cancel_run(run, by=BY), {"queued", "running", "held", "parked"}),
    "dismiss": (lambda run: dismiss_run(run, note="enough", by=BY), {"parked"}),
    "retry": (lambda run: retry_run(run, by=BY), {"parked", "failed", "cancelled"}),
}


@pytest.fixture
def session(workspace: Workspace) -> Session:
    return open_at(workspace)


def request(session: Session, kind: str = "compression", **options: object) -> Run:
    return request_run(session, kind, options=options, by=BY)[0]


def claimed(session: Session, **options: object) -> Run:
    run = claim_run(request(session, **options).pk, owner="w", now=NOW)
    assert run is not None
    return run


def ended(session: Session, status: str, **values: object) -> Run:
    given = {"kind": "compression", "finished_at": NOW} | values
    return Run.objects.create(workspace=session.workspace, session=session, status=status, **given)


@pytest.mark.parametrize("status", Run.Status.values)
@pytest.mark.parametrize("action", ACTIONS)
def test_each_action_needs_certain_states(session, action, status):
    act, states = ACTIONS[action]
    run = ended(session, status)

    if status in states:
        act(run)
    else:
        with pytest.raises(RunNotFitting):
            act(run)
        assert Run.objects.get().status == status


def test_requests_of_one_kind_share_a_queued_run(session, workspace):
    run = request(session, keep=1)
    other = request(open_at(workspace, "cli:other"))

    again, is_new = request_run(session, "compression", options={"hold": True}, by=By(PERSON, LATER))

    assert (again, is_new, again.options, again.not_before) == (run, False, {"keep": 1, "hold": True}, NOW)
    assert request(session, "consolidation") != run != other
    Run.objects.filter(pk=run.pk).update(status="done")
    assert request(session) != run


@pytest.mark.parametrize("status", [status for status in Run.Status.values if status != "queued"])
def test_only_queued_runs_are_claimed(workspace, status):
    run = Run.objects.create(workspace=workspace, kind="scan", status=status, not_before=NOW)

    assert claim_run(run.pk, owner="w", now=NOW) is None


def test_a_run_is_not_claimed_before_its_time(session):
    run = request_run(session, "compression", options={}, by=By(PERSON, LATER))[0]

    assert due_runs(NOW) == []
    assert claim_run(run.pk, owner="w", now=NOW) is None
    assert due_runs(LATER) == [run.pk]


def test_a_session_has_one_running_run(session, workspace):
    claimed(session)
    second = request(session, "consolidation")
    elsewhere = request(open_at(workspace, "cli:other"))

    assert claim_run(second.pk, owner="w", now=NOW) is None
    assert due_runs(NOW) == [elsewhere.pk]


@pytest.mark.parametrize("lost", [{"status": "cancelled"}, {"fencing_number": 7}])
def test_a_worker_without_the_lease_changes_nothing(session, lost):
    run = claimed(session)
    Run.objects.update(**lost)
    before = Run.objects.values().get()

    for act in (renew_lease, lambda run: finish_run(run, status="done", now=NOW)):
        with pytest.raises(LeaseLost):
            act(run)
    fail_run(run, Busy("no", code="x"), now=NOW, is_transient=True)
    postpone_run(run, until=LATER, why="budget")

    assert Run.objects.values().get() == before


@pytest.mark.parametrize(
    ("attempts", "is_transient", "options", "status"),
    [
        (0, True, {}, "queued"),
        (MAX_FAILURES - 2, True, {}, "queued"),
        (MAX_FAILURES - 1, True, {}, "parked"),
        (0, False, {}, "parked"),
        (0, True, {"once": True}, "failed"),
    ],
)
def test_a_failed_run_is_retried_a_few_times(session, attempts, is_transient, options, status):
    run = claimed(session, **options)
    Run.objects.update(attempt_count=attempts)

    fail_run(run, Busy("no", code="x"), now=NOW, is_transient=is_transient)

    assert Run.objects.get().status == status


def test_a_retried_run_starts_over(session):
    run = ended(session, "parked", attempt_count=3, fencing_number=4, options={"once": True, "keep": 1})

    again = retry_run(run, by=BY)

    assert (again.status, again.attempt_count, again.fencing_number, again.finished_at) == ("queued", 0, 5, None)
    assert again.options == {"keep": 1}


def test_deletions_are_not_retried(workspace):
    run = Run.objects.create(workspace=workspace, kind="edit", status="parked", options={"action": "delete"})

    with pytest.raises(RunNotFitting):
        retry_run(run, by=BY)


@pytest.mark.parametrize(
    ("options", "number", "status"),
    [
        ({}, MAX_TAKEOVERS - 1, "queued"),
        ({}, MAX_TAKEOVERS, "parked"),
        ({"once": True}, 1, "parked"),
    ],
)
def test_a_run_that_lost_its_worker_is_queued_or_parked(session, options, number, status):
    claimed(session, **options)
    Run.objects.update(lease_owner=GONE, fencing_number=number)

    assert len(free_stuck_runs(NOW)) == 1
    assert Run.objects.get().status == status


def test_a_run_of_another_machine_is_freed_after_its_lease_expires(session):
    claimed(session)
    Run.objects.update(lease_owner=ELSEWHERE)

    assert free_stuck_runs(NOW) == []
    Run.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    assert len(free_stuck_runs(NOW)) == 1


@pytest.mark.parametrize(
    ("status", "options", "rests"),
    [
        ("queued", {}, True),
        ("held", {}, True),
        ("parked", {}, True),
        ("done", {}, False),
        ("parked", {"once": True}, False),
    ],
)
def test_automatic_runs_pause_while_one_is_unsettled(session, status, options, rests):
    ended(session, status, options=options)
    add(session, turn(0), now=LATER)

    assert is_resting(session, "compression", until=1) is rests


def test_automatic_runs_pause_after_a_rejection_until_the_session_has_grown(session):
    add(session, turn(0, tools=0), now=NOW - timedelta(hours=1))
    ended(session, "cancelled")
    add(session, turn(1, tools=0), now=LATER)
    session.refresh_from_db()

    assert is_resting(session, "compression", until=3)
    assert not is_resting(session, "compression", until=2)
    assert not is_resting(session, "consolidation", until=3)
    session.epoch += 1
    assert not is_resting(session, "compression", until=3)


def test_tokens_are_counted_for_each_workspace_and_day(session):
    other = open_at(Workspace.objects.create(slug="other", name="Other"))
    yesterday = NOW - timedelta(days=1)
    for place, started_at, finished_at, tokens in (
        (session, NOW, None, 1),
        (session, yesterday, NOW, 20),
        (session, yesterday, yesterday, 300),
        (other, NOW, NOW, 4000),
    ):
        ended(place, "done", started_at=started_at, finished_at=finished_at, prompt_tokens=tokens)

    assert tokens_spent(session.workspace, NOW) == 21
