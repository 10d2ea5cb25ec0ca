"""Check what a consolidation proposes: its new text and where its facts come from, its history entry and summary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from knowledge_app.services.removed_texts import RemovedTexts
from memoryhub.lib.content_check.check import flagged_lines
from memoryhub.lib.document_size import check_size
from memoryhub.lib.text.change_guard import CheckedChange, check_change, compare_facts
from memoryhub.lib.text.facts import fact_lines, match_facts, normal_form
from memoryhub.lib.text.merge import merge_texts, overlay_texts
from memoryhub.lib.text.provenance import lacks_user_source, sources_of
from sessions_app.models import Entry

HELD_LINE = "[held for review]"


@dataclass(frozen=True)
class Proposal:
    """The model's result: the new text of MEMORY.md (the base if unchanged), the history entry and the summary."""

    memory: str
    history: str
    summary_text: str | None = None


@dataclass(frozen=True)
class CheckedProposal:
    """A proposal merged with the document's current text, and what the checks found in it.

    ``conflict_count``: 0 if the texts can be merged. ``foreign``: lines of new facts that no user wrote.
    ``returned``: lines of facts that were removed or corrected, and that the model adds again.
    ``unflagged``: the proposal without flagged lines in its history entry and summary.
    """

    change: CheckedChange
    conflict_count: int
    foreign: set[int]
    returned: set[int]
    unflagged: Proposal


def check_proposal(
    proposal: Proposal,
    entries: Sequence[Entry],
    base: str,
    current: str,
    *,
    removed: RemovedTexts,
    known: CheckedProposal | None = None,
) -> CheckedProposal:
    """Merge a proposal with the document's current text and check it. ``known`` is returned if the text is the same.

    Raises LimitExceeded.
    """
    if known is not None and known.change.before == current:
        return known
    merged = merge_texts(base, current, proposal.memory)
    wanted = overlay_texts(base, current, proposal.memory)
    check_size(wanted, current)
    return CheckedProposal(
        check_change(current, wanted),
        merged.conflict_count if merged.text is None else 0,
        foreign_facts(current, wanted, entries),
        returned_facts(base, current, wanted, removed),
        known.unflagged if known else without_flagged_lines(proposal),
    )


def foreign_facts(before: str, after: str, entries: Sequence[Entry]) -> set[int]:
    """Return the line numbers of new facts that come only from messages that no user wrote."""
    added = compare_facts(before, after).added
    sources = sources_of((entry.role, entry.content) for entry in entries) if added else []
    return {fact.line for fact in added if lacks_user_source(fact.text, sources)}


def returned_facts(base: str, current: str, after: str, removed: RemovedTexts) -> set[int]:
    """Return the line numbers of new facts that people removed: with the same words if it was before ``base``.

    Those that ``base`` has and ``current`` has no longer are recognised in similar words, too.
    """
    since = compare_facts(base, current)
    gone = [*since.removed, *(old for old, _ in since.rewritten)]
    added = compare_facts(current, after).added if gone else []
    return {added[index].line for index in match_facts(gone, added)} | removed.added_again(current, after)


def foreign_reason(count: int) -> str:
    if count == 1:
        return "1 new fact comes only from tool results or other messages that the user didn't write"
    return f"{count} new facts come only from tool results or other messages that the user didn't write"


def held_facts(proposed: str, committed: str) -> list[str]:
    """Return the normal forms of the facts that a proposed text has and the committed one lacks."""
    kept = {normal_form(line.text) for line in fact_lines(committed)}
    return [form for line in fact_lines(proposed) if (form := normal_form(line.text)) not in kept]


def without_flagged_lines(proposal: Proposal) -> Proposal:
    """Return a proposal without the lines of its history entry and summary that the content check flags."""
    history, summary = proposal.history, proposal.summary_text
    return replace(
        proposal,
        history=_without(history, flagged_lines(history), HELD_LINE),
        summary_text=None if summary is None else _without(summary, flagged_lines(summary), ""),
    )


def without_held_facts(proposal: Proposal, held: Collection[str]) -> Proposal:
    """Return a proposal without the lines of its history entry and summary that contain a held fact."""
    history, summary = proposal.history, proposal.summary_text
    return replace(
        proposal,
        history=_without(history, _lines_with(history, held), HELD_LINE),
        summary_text=None if summary is None else _without(summary, _lines_with(summary, held), ""),
    )


def _lines_with(text: str, held: Collection[str]) -> set[int]:
    return {
        number
        for number, line in enumerate(text.split("\n"), 1)
        if any(form and form in normal_form(line) for form in held)
    }


def _without(text: str, numbers: Collection[int], placeholder: str) -> str:
    lines = text.split("\n")
    kept = [placeholder if number in numbers else line for number, line in enumerate(lines, 1)]
    return "\n".join(line for line, old in zip(kept, lines, strict=True) if line or not old)
