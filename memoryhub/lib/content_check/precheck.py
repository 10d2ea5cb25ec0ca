"""Check texts before a transaction: a check takes milliseconds, and a transaction blocks other writers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from memoryhub.lib.content_check.check import Finding, check_text
from memoryhub.lib.content_check.shape import EXPLANATIONS, TOO_LONG

MAX_CHECKED_CHARS = 200_000  # a check takes up to 70 microseconds per character
_checked: ContextVar[Mapping[str, list[Finding]]] = ContextVar("checked", default=MappingProxyType({}))


@contextmanager
def prechecked(texts: Iterable[str]) -> Iterator[None]:
    """Check texts now; in this block, ``findings_in`` returns their findings at once."""
    token = _checked.set({text: findings_in(text) for text in {text.strip() for text in texts}})
    try:
        yield
    finally:
        _checked.reset(token)


def findings_in(text: str) -> list[Finding]:
    """Return what ``check_text`` finds in a text without surrounding space. A text that is too long isn't checked."""
    stripped = text.strip()
    if len(stripped) > MAX_CHECKED_CHARS:
        return [Finding(TOO_LONG, 1, EXPLANATIONS[TOO_LONG])]
    known = _checked.get().get(stripped)
    return check_text(stripped) if known is None else known
