"""Run calls in two transactions at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import wraps
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from django.db import connection

from memoryhub.lib.errors import MemoryHubError

WAIT = 0.5  # seconds that a call waits for the other, which may be blocked


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Return the result of each call, or the expected error that it raised."""

    def run(call: Callable[[], object]) -> object:
        try:
            return call()
        except MemoryHubError as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def meet_after(patch: pytest.MonkeyPatch, place: Any, name: str, barrier: Barrier | None = None) -> None:
    """Let two calls of a function wait for each other before they return, unless one of them is blocked.

    ``barrier``: shared by calls of two functions.
    """
    function, barrier = getattr(place, name), barrier or Barrier(2)

    @wraps(function)
    def meeting(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        with suppress(BrokenBarrierError):
            barrier.wait(WAIT)
        return result

    patch.setattr(place, name, meeting)
