"""Counts of an import."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from memoryhub.lib.layouts.records import Problem

_NAMES = {
    "entries": "messages",
    "sessions": "conversations",
    "history": "history entries",
    "knowledge": "knowledge entries",
}


@dataclass
class ImportCounts:
    """Numbers of added, updated and unchanged rows by kind (entries, sessions, history, …), and the problems.

    ``left``: how many changes weren't proposed because too many are waiting.
    """

    added: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    left: int = 0

    def include(self, other: ImportCounts) -> None:
        self.added += other.added
        self.updated += other.updated
        self.unchanged += other.unchanged
        self.problems += other.problems
        self.left += other.left


def import_sentence(tally: ImportCounts) -> str:
    """Return the sentence that the audit log keeps for an import."""

    def listed(counts: dict[str, int]) -> str:
        return ", ".join(_counted(count, kind) for kind, count in counts.items() if count)

    parts = [
        f"{word} {listed(counts)}"
        for word, counts in (("added", tally.added), ("updated", tally.updated))
        if listed(counts)
    ]
    count = len(tally.problems)
    parts += [f"{count} {'warning' if count == 1 else 'warnings'}"] if count else []
    return f"Imported: {'; '.join(parts) or 'nothing new'}"


def _counted(count: int, kind: str) -> str:
    """Return "38 messages" for 38 entries, "1 summary" for one of the summaries."""
    name = _NAMES.get(kind, kind.replace("_", " "))
    if count == 1:
        name = f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")
    return f"{count:,} {name}"
