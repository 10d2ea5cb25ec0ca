"""Counts of an import."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from memoryhub.lib.layouts.records import Problem


@dataclass
class ImportCounts:
    """Numbers of added, updated and unchanged rows by kind (entries, sessions, history, …), and the problems."""

    added: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)

    def include(self, other: ImportCounts) -> None:
        self.added += other.added
        self.updated += other.updated
        self.unchanged += other.unchanged
        self.problems += other.problems
