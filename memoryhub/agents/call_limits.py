"""Limits on calls in a minute, of a token or of an address without one.

Web processes on PostgreSQL share it: each reserves calls in the database, some at a time, so that most calls write
nothing. A process may keep unused calls, at most a sixtieth of the limit. With CACHE_URL, Redis counts each call.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.core.cache import caches

from memoryhub.agents.api_tokens import Caller
from memoryhub.lib.database import db_retry
from memoryhub.lib.database.add_to_rows import add_to_rows
from memoryhub.lib.errors import LimitExceeded
from memoryhub.models import FailedAttempts

SECONDS = 120  # that a counter is kept
cache = caches["calls"]


class TooManyCalls(LimitExceeded):
    """The rate limit is exceeded. ``retry_after``: seconds to wait."""

    code = "too_many_calls"
    status = 429


def spend_call(caller: Caller, now: datetime) -> None:
    """Count a call against the token's limit for this minute. Raises TooManyCalls."""
    spend(f"calls:{caller.token.pk}", caller.token.per_minute, now)


def spend(name: str, limit: int, now: datetime) -> None:
    """Count a call against a limit for this minute. Raises TooManyCalls."""
    counter = f"{name}:{int(now.timestamp() // 60)}"
    if _take(counter, 0 if settings.SHARED_CALL_LIMITS else limit) >= 0:
        return
    if settings.SHARED_CALL_LIMITS and (reserved := _reserve(counter, limit, now)):
        cache.incr(counter, reserved)
        return
    wait = 60 - int(now.timestamp() % 60)
    message = f"The limit is {limit:,} calls a minute. Try again in {wait} seconds."
    raise TooManyCalls(message, retry_after=wait)


def _take(counter: str, initial: int) -> int:
    """Take one of the calls that are left, ``initial`` in a new counter; return how many are left then."""
    for _ in range(2):
        cache.add(counter, initial, SECONDS)
        with suppress(ValueError):  # it was evicted, or Redis went away or came back, between these two calls
            return int(cache.decr(counter))
    return 0


def _reserve(counter: str, limit: int, now: datetime) -> int:
    """Reserve calls for this process, and the one that is waiting; return their number, 0 if none are left.

    If the database can't be written, the process has the limit for itself.
    """
    if cache.get(f"{counter}:all"):
        return 0
    block = max(1, limit // 60)
    row = {
        "key": sha256(counter.encode()).hexdigest(),
        "count": block,
        "expires_at": now + timedelta(seconds=SECONDS),
    }
    counted: list[tuple[Any, ...]] = []

    def add() -> None:
        counted[:] = add_to_rows(FailedAttempts, [row], unique=["key"], sums=["count"])

    is_counted = db_retry.try_write(add, "a call")
    reserved = min(block, limit - (counted[0][0] - block)) if is_counted else limit
    if not is_counted or reserved <= 0:
        cache.set(f"{counter}:all", "reserved", SECONDS)
    return max(0, reserved)
