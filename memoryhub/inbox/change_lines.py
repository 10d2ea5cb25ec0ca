"""The line of a held change that its row in the inbox shows."""

from __future__ import annotations

from collections.abc import Iterator

from knowledge_app.models import HeldChange
from memoryhub.lib.content_check.check import check_text
from memoryhub.lib.text.change_guard import code_of_check
from memoryhub.lib.text_caches import text_cache

LINES_CHARS = 60_000  # of both texts
NO_LINE = ("", "")


def worst_line(change: HeldChange, old: str, new: str) -> tuple[str, str]:
    """Return the changed line with the most harmful finding, or else the first one, with its sign.

    ``old``, ``new``: the first LINES_CHARS characters of the texts.
    """
    before, after = (text.split("\n")[: -1 if len(text) == LINES_CHARS else None] for text in (old, new))
    worst = change.findings[0] if change.findings else ""
    if code_of_check(worst) and (line := _flagged("\n".join(_others(after, before)), worst)):
        return "+", line
    added, removed = next(_others(after, before), ""), next(_others(before, after), "")
    return ("+", added) if added else ("−", removed) if removed else NO_LINE


def _others(lines: list[str], known: list[str]) -> Iterator[str]:
    seen = set(known)
    return (line for line in lines if line.strip() and line not in seen)


@text_cache(128)  # each look at the inbox asks for the same changes
def _flagged(added: str, reason: str) -> str:
    """Return the first of these lines for which a change is held for a reason, "" if there is none."""
    lines = added.split("\n")
    return next((lines[found.line - 1] for found in check_text(added) if reason.endswith(found.message)), "")
