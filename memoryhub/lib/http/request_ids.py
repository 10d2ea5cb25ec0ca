"""The id of the current request, for its response, its log records and its errors."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

HEADER = "X-Request-ID"
_SANE = re.compile(r"[A-Za-z0-9._:=+-]{1,64}")
_current: ContextVar[str] = ContextVar("request_id", default="")


@contextmanager
def identified(given: str) -> Iterator[str]:
    """Set the id of a request during the block, and yield it: the given one if it is sane, otherwise a new one."""
    token = _current.set(given if _SANE.fullmatch(given) else uuid.uuid4().hex)
    try:
        yield _current.get()
    finally:
        _current.reset(token)


def current_request_id() -> str:
    """Return the id of the current request; "" outside of requests."""
    return _current.get()
