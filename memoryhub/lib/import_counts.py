"""What taking records into the hub came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from memoryhub.lib.layouts.records import Problem


@dataclass
class ImportCounts:
    """Counts by kind (entries, sessions, history, …) and the problems on the way."""

    added: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)

    def include(self, other: ImportCounts) -> None:
        self.added += other.added
        self.updated += other.updated
        self.unchanged += other.unchanged
        self.problems += other.problems
