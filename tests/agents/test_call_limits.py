"""The limit on a token's calls in a minute, in one process and in several."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache.backends.locmem import LocMemCache

from memoryhub.agents import call_limits
from memoryhub.agents.api_tokens import authenticate
from memoryhub.agents.call_limits import TooManyCalls, spend_call
from memoryhub.models import FailedAttempts
from tests.agents.test_api_tokens import NOW, issue

pytestmark = pytest.mark.django_db


def caller_with(workspace, limit):
    return authenticate(issue(workspace, per_minute=limit)[1], via="rest", now=NOW)


def spend_all(caller, now=NOW) -> int:
    """Return how many calls are accepted until one is refused."""
    for accepted in range(10_000):
        try:
            spend_call(caller, now)
        except TooManyCalls:
            return accepted
    raise AssertionError("no limit")


@pytest.fixture
def processes(settings, monkeypatch):
    """Return a function that switches to the memory of one of several processes."""
    settings.SHARED_CALL_LIMITS = True

    def switch(name: str) -> None:
        monkeypatch.setattr(call_limits, "cache", LocMemCache(f"process {name}", {}))

    for name in "ab":
        LocMemCache(f"process {name}", {}).clear()
    return switch


@pytest.mark.parametrize("is_shared", [False, True])
def test_the_rate_limit_restarts_each_minute(workspace, settings, is_shared):
    settings.SHARED_CALL_LIMITS = is_shared
    caller = caller_with(workspace, 2)

    assert spend_all(caller) == 2
    with pytest.raises(TooManyCalls) as refused:
        spend_call(caller, NOW + timedelta(seconds=20))
    assert refused.value.details == {"retry_after": 40}
    assert spend_all(caller, NOW + timedelta(minutes=1)) == 2


@pytest.mark.parametrize("limit", [1, 60, 600, 601])
def test_processes_share_the_limit(workspace, processes, limit):
    caller = caller_with(workspace, limit)

    processes("a")
    first = spend_all(caller) if limit == 1 else sum(spend_call(caller, NOW) is None for _ in range(limit // 2))
    processes("b")
    second = spend_all(caller)
    processes("a")

    assert first + second + spend_all(caller) == limit


def test_few_calls_are_written(workspace, processes, django_assert_max_num_queries):
    caller = caller_with(workspace, 600)
    processes("a")

    with django_assert_max_num_queries(5 * 12):  # of which two are a savepoint, and two SQLite's time limit
        for _ in range(100):
            spend_call(caller, NOW)


def test_a_process_that_cannot_write_counts_alone(workspace, processes, monkeypatch):
    monkeypatch.setattr(call_limits.db_retry, "try_write", lambda *_: False)
    processes("a")

    assert spend_all(caller_with(workspace, 60)) == 60
    assert not FailedAttempts.objects.exists()
