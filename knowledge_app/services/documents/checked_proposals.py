"""Check what a consolidation proposes: where its facts come from, its history entry and its summary."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memoryhub.lib.content_check.check import flagged_lines
from memoryhub.lib.text.change_guard import compare_facts
from memoryhub.lib.text.facts import fact_lines, normal_form
from memoryhub.lib.text.provenance import lacks_user_source, sources_of
from sessions_app.models import Entry

HELD_LINE = "[held for review]"


def foreign_facts(before: str, after: str, entries: Sequence[Entry]) -> set[int]:
    """Return the line numbers of new facts that come only from messages that no user wrote."""
    added = compare_facts(before, after).added
    sources = sources_of((entry.role, entry.content) for entry in entries) if added else []
    return {fact.line for fact in added if lacks_user_source(fact.text, sources)}


def foreign_reason(count: int) -> str:
    if count == 1:
        return "1 new fact comes only from tool results or other messages that the user didn't write"
    return f"{count} new facts come only from tool results or other messages that the user didn't write"


def held_facts(proposed: str, committed: str) -> list[str]:
    """Return the normal forms of the facts that a proposed text has and the committed one lacks."""
    kept = {normal_form(line.text) for line in fact_lines(committed)}
    return [form for line in fact_lines(proposed) if (form := normal_form(line.text)) not in kept]


def without_held(text: str, held: Collection[str], *, check: bool = True, placeholder: str = HELD_LINE) -> str:
    """Return a text with a placeholder for each line that contains a held fact or, with ``check``, is flagged."""
    flagged = flagged_lines(text) if check else set()
    lines = text.split("\n")
    kept = [
        placeholder if number in flagged or any(form and form in normal_form(line) for form in held) else line
        for number, line in enumerate(lines, 1)
    ]
    return "\n".join(line for line, old in zip(kept, lines, strict=True) if line or not old)
