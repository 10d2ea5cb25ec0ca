"""The parts of a held change as a page shows them: diff lines with their warnings, context and source message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.utils.translation import gettext

from knowledge_app.models import HeldChange
from knowledge_app.services.documents.change_review import pinned_lines
from knowledge_app.services.documents.held_changes import Hunk, stale_hunks, text_with
from memoryhub.lib.masked_text import masked
from memoryhub.lib.text.change_guard import compare_facts, count_negations, numbers_in
from memoryhub.lib.text.diff import DiffLine, reworded_lines
from memoryhub.lib.text.places import changed_places
from memoryhub.lib.text.provenance import MIN_SHARE
from memoryhub.lib.text.similarity import tokens_of
from memoryhub.runs.flagged_parts import parts_with_warnings
from sessions_app.models import Entry, Run

AROUND = 2  # lines of context before and after a part
MAX_SOURCES = 500  # messages of a run compared with each part
MAX_COMPARED = 50  # parts of a change that may change what is above a pinned fact
MAX_RECENT = 200  # messages before a change that no run made
SAVED_WITHIN = timedelta(minutes=10)  # an agent may save a session after the memory that it wrote from it
ACCEPT, REJECT, WAIT = "accept", "reject", "wait"
Warnings = defaultdict[str, list[str]]  # by line


@dataclass(frozen=True)
class PartLine:
    """A line of a part's diff with the warnings about it."""

    line: DiffLine
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ChangePart:
    """One part of a change. ``source``: the message that shares the most words with its new lines, if any does.

    A run read its messages; those of other changes are only probable. ``is_stale``: the document has changed in its
    lines since. ``chosen``: the decision in a form that couldn't be carried out.
    """

    number: int
    start: int
    lines: list[PartLine]
    source: Entry | None = None
    is_stale: bool = False
    chosen: str | None = None

    @property
    def is_risky(self) -> bool:
        return any(line.warnings for line in self.lines)

    @property
    def decision(self) -> str:
        """The decision to begin with. A flagged or stale part has none: a person has to make it."""
        if self.chosen is not None:
            return self.chosen
        return WAIT if self.is_risky or self.is_stale else ACCEPT


def change_parts(change: HeldChange, form: Mapping[str, str]) -> list[ChangePart]:
    """Return the parts of a change in order, with secrets masked. Reads its source messages.

    ``form``: the decisions of a form that is shown again; empty otherwise.
    """
    found = parts_with_warnings(change)
    ours = (change.ours.content if change.ours else "").split("\n")
    messages = _messages(change)
    about_facts = _fact_warnings(change, [hunk for hunk, _ in found])
    stale = stale_hunks(change) if change.status == HeldChange.Status.PENDING else set()
    parts = []
    for index, (hunk, warnings) in enumerate(found):
        first = found[index - 1][0].end if index else 0
        last = found[index + 1][0].start if index + 1 < len(found) else len(ours)
        before = _context(ours, max(first, hunk.start - AROUND), hunk.start)
        after = _context(ours, hunk.end, min(last, hunk.end + AROUND))
        lines = [*before, *_changed_lines(hunk, warnings, about_facts), *after]
        source, chosen = _source(hunk.new, messages), form.get(f"decision-{hunk.number}")
        parts.append(ChangePart(hunk.number, hunk.start + 1, lines, source, hunk.number in stale, chosen))
    return parts


def _context(lines: Sequence[str], start: int, end: int) -> list[PartLine]:
    return [PartLine(DiffLine("same", masked(lines[at]), at + 1)) for at in range(start, end)]


def _changed_lines(
    hunk: Hunk, warnings: dict[str, list[str]], about_facts: tuple[Warnings, Warnings]
) -> list[PartLine]:
    old, new = [masked(line) for line in hunk.old], [masked(line) for line in hunk.new]
    pairs = reworded_lines(old, new)
    pairs += [((), ())] * (max(len(old), len(new)) - len(pairs))
    about_old, about_new = about_facts
    removed = [
        PartLine(DiffLine("del", text, hunk.start + at + 1, parts=pairs[at][0]), about_old[hunk.old[at]])
        for at, text in enumerate(old)
    ]
    added = [
        PartLine(
            DiffLine("ins", text, parts=pairs[at][1]), [*warnings.get(hunk.new[at], []), *about_new[hunk.new[at]]]
        )
        for at, text in enumerate(new)
    ]
    return [*removed, *added]


def _fact_warnings(change: HeldChange, hunks: Sequence[Hunk]) -> tuple[Warnings, Warnings]:
    """Return what a flagged change does to facts, by their lines in the old and the new text."""
    ours = change.ours.content if change.ours else ""
    old, new = ours.split("\n"), change.proposed.split("\n")
    about_old: Warnings = defaultdict(list)
    about_new: Warnings = defaultdict(list)
    if not change.findings:
        return about_old, about_new
    facts = compare_facts(ours, change.proposed)
    for fact in facts.removed:
        about_old[old[fact.line - 1]].append(gettext("Removes a fact."))
    for before, after in facts.rewritten:
        if numbers_in(before.text) != numbers_in(after.text):
            about_new[new[after.line - 1]].append(gettext("Changes a number."))
        if count_negations(before.text) != count_negations(after.text):
            about_new[new[after.line - 1]].append(gettext("Changes a negation."))
    _warn_of_pins(change, ours, hunks, about_old, about_new)
    return about_old, about_new


def _warn_of_pins(
    change: HeldChange, ours: str, hunks: Sequence[Hunk], about_old: Warnings, about_new: Warnings
) -> None:
    """Add a warning to each changed line with a pinned fact, and to parts that change what is above one."""
    pinned, old, words = pinned_lines(change.document, ours), ours.split("\n"), gettext("Changes a pinned fact.")
    touched = changed_places(ours, change.proposed, pinned) if pinned else []
    for number in touched:
        about_old[old[number - 1]].append(words)
    elsewhere = [number for number in touched if not any(hunk.start < number <= hunk.end for hunk in hunks)]
    for hunk in hunks[:MAX_COMPARED] if elsewhere else []:
        if changed_places(ours, text_with(change, {hunk.number}), elsewhere):
            lines, about = (hunk.new, about_new) if any(map(str.strip, hunk.new)) else (hunk.old, about_old)
            about[next((line for line in lines if line.strip()), "")].append(words)


def _messages(change: HeldChange) -> list[tuple[Entry, frozenset[str]]]:
    run = change.run
    if run is None:
        return _recent_messages(change)
    if run.kind != Run.Kind.CONSOLIDATION or not run.session_id:
        return []
    entries = Entry.objects.in_conversation().filter(
        session=run.session_id, epoch=run.epoch, position__gte=run.from_position, position__lt=run.to_position
    )
    return [(entry, frozenset(tokens_of(entry.content))) for entry in entries.order_by("position")[:MAX_SOURCES]]


def _recent_messages(change: HeldChange) -> list[tuple[Entry, frozenset[str]]]:
    """Return the latest messages before a change of the agent's file or of a tool call."""
    entries = Entry.objects.in_conversation().filter(
        workspace=change.workspace_id, kind=Entry.Kind.MESSAGE, recorded_at__lte=change.created_at + SAVED_WITHIN
    )
    latest = entries.select_related("session").order_by("-pk")[:MAX_RECENT]
    return [(entry, frozenset(tokens_of(entry.content))) for entry in reversed(latest)]


def _source(lines: Sequence[str], messages: Sequence[tuple[Entry, frozenset[str]]]) -> Entry | None:
    words = frozenset(tokens_of("\n".join(lines)))
    if not words or not messages:
        return None
    share, _, entry = max((len(words & found) / len(words), -at, entry) for at, (entry, found) in enumerate(messages))
    return entry if share >= MIN_SHARE else None
