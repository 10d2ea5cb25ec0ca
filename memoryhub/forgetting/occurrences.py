"""How the words of an erasure occur: alone, as part of an expression, or within longer words, which stay. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal

from memoryhub.forgetting.matching import Phrase, Span, composed, find_phrases, tokens_with_places

Group = Literal["alone", "part", "kept"]
MOST_SHOWN = 8  # of each group
AROUND = 40  # characters of an example at each side
_BEFORE = re.compile(r"(?:\w+[-_@./+'’])+$")
_AFTER = re.compile(r"(?:[-_@./+'’]\w+)+")
_POSSESSIVE = re.compile(r"['’]s?$", re.IGNORECASE)


@dataclass
class Occurrence:
    """An expression, the number of rows with it, and an example of where it occurs."""

    text: str
    example: str
    rows: int = 0


@dataclass
class Occurrences:
    """The expressions with the phrases, by group and folded text."""

    phrases: Collection[Phrase]
    found: dict[Group, dict[str, Occurrence]] = field(default_factory=lambda: {"alone": {}, "part": {}, "kept": {}})

    def __post_init__(self) -> None:
        self._find = find_phrases(self.phrases)

    def may_match(self, text: str) -> bool:
        """Tell whether a text has the words, also within longer words."""
        folded = text.casefold()
        return any(phrase[0] in folded for phrase in self.phrases)

    def add(self, texts: Iterable[str]) -> None:
        """Count the expressions in the texts of a row once each."""
        seen: set[tuple[Group, str]] = set()
        for text in map(composed, texts):
            if not self.may_match(text):
                continue
            for group, (start, end) in self._expressions(text):
                name = text[start:end]
                key = (group, name.casefold())
                if key not in seen:
                    seen.add(key)
                    one = self.found[group].setdefault(key[1], Occurrence(name, _around(text, start, end)))
                    one.rows += 1

    def listed(self, group: Group) -> list[Occurrence]:
        """Return the most frequent expressions of a group."""
        return sorted(self.found[group].values(), key=lambda one: (-one.rows, one.text))[:MOST_SHOWN]

    @property
    def groups(self) -> list[tuple[Group, list[Occurrence], int]]:
        """The groups that occur, with the number of expressions that aren't listed."""
        found = ((group, self.listed(group), len(self.found[group])) for group in self.found)
        return [(group, listed, count - len(listed)) for group, listed, count in found if listed]

    def _expressions(self, text: str) -> Iterable[tuple[Group, Span]]:
        spans = self._find(text)
        for start, end in spans:
            wide = _widened(text, start, end)
            yield ("alone" if wide == (start, end) else "part"), wide
        firsts = {phrase[0] for phrase in self.phrases if len(phrase) == 1}
        for token, start, end in tokens_with_places(text) if firsts else ():
            if any(first in token and first != token for first in firsts) and not _is_in((start, end), spans):
                yield "kept", (start, end)


def _widened(text: str, start: int, end: int) -> Span:
    """Return the expression around a match: a compound, an address, a path. "Ann's" is Ann."""
    before = _BEFORE.search(text, max(0, start - 100), start)
    after = _AFTER.match(text, end)
    stop = after.end() if after and not _POSSESSIVE.fullmatch(after.group()) else end
    return (before.start() if before else start), stop


def _is_in(span: Span, others: Collection[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in others)


def _around(text: str, start: int, end: int) -> str:
    first, last = max(0, start - AROUND), min(len(text), end + AROUND)
    line = " ".join(text[first:last].split())
    return f"{'…' if first else ''}{line}{'…' if last < len(text) else ''}"
