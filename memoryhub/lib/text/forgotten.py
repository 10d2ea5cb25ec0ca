"""The mark that replaces erased text."""

from __future__ import annotations

MARK = "[forgotten]"


def without_mark(text: str) -> str:
    """Return a text without the marks of what was erased from it."""
    return text.replace(MARK, " ") if MARK in text else text
