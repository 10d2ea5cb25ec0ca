from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memoryhub.lib.llm import Reply
from memoryhub.lib.tokens import count_tokens
from sessions_app.models import Run
from sessions_app.services.audit import By
from sessions_app.services.compressing.token_budget import budget_left, record_cost, within_budget
from sessions_app.services.runs import claim_run, request_run
from tests.hub import NOW, PERSON, open_at, raises_code

pytestmark = pytest.mark.django_db
MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "what is new in the garden?"}]
NEEDED = sum(count_tokens(message["content"]) for message in MESSAGES)


@pytest.fixture
def run(workspace) -> Run:
    queued, _ = request_run(open_at(workspace), Run.Kind.COMPRESSION, options={}, by=By(PERSON, NOW))
    return claim_run(queued.pk, now=NOW, owner="here")


def spend(run: Run, tokens: int, at: datetime = NOW) -> None:
    Run.objects.filter(pk=run.pk).update(prompt_tokens=tokens - 3, completion_tokens=3, started_at=at)


def allow(run: Run, budget: int | None) -> bool:
    run.workspace.daily_token_budget = budget
    return within_budget(run, run.workspace, MESSAGES, NOW)


def test_the_last_token_of_the_day_may_be_used(run):
    spend(run, 100)

    assert allow(run, 100 + NEEDED)
    assert allow(run, None)
    assert budget_left(run.workspace, NOW) is None


def test_a_request_that_does_not_fit_waits_until_midnight_and_counts_as_no_attempt(run):
    spend(run, 100)

    assert not allow(run, 100 + NEEDED - 1)
    run.refresh_from_db()
    assert (run.status, run.not_before) == (Run.Status.QUEUED, datetime(2026, 4, 2, tzinfo=UTC))
    assert run.attempt_count == 0


def test_a_request_that_no_day_has_tokens_for_or_that_somebody_waits_for_is_refused(run):
    with raises_code("budget_spent"):
        allow(run, NEEDED - 1)

    spend(run, 100)
    run.options = {"once": True}
    with raises_code("budget_spent"):
        allow(run, 100)


def test_tokens_of_yesterday_are_no_tokens_of_today(run):
    run.workspace.daily_token_budget = 1_000
    spend(run, 400)
    assert budget_left(run.workspace, NOW) == 600

    spend(run, 400, at=NOW.replace(hour=0))
    assert budget_left(run.workspace, NOW) == 600
    spend(run, 400, at=NOW.replace(hour=0) - timedelta(seconds=1))
    assert budget_left(run.workspace, NOW) == 1_000


def test_what_was_spent_beyond_the_budget_is_no_debt(run):
    run.workspace.daily_token_budget = 300
    spend(run, 400)

    assert budget_left(run.workspace, NOW) == 0


@pytest.mark.parametrize(
    ("said", "expected"), [((70, 9), (80, 14)), ((0, 0), (10 + NEEDED, 5 + count_tokens("roses")))]
)
def test_a_reply_adds_what_the_server_counted_else_an_estimate(run, said, expected):
    run.prompt_tokens, run.completion_tokens = 10, 5
    reply = Reply("roses", "m", *said)

    record_cost(run, MESSAGES, reply, "roses")

    assert (run.prompt_tokens, run.completion_tokens) == expected
