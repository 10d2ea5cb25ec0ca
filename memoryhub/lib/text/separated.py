"""Documents whose facts are entries between separator lines, such as Hermes' with ``§``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

SECTION_SIGN = "§"


@dataclass(frozen=True)
class SeparatedEntry:
    """``text`` may have several lines; ``line`` is its first one, from 1."""

    text: str
    line: int


def separator_in(text: str) -> str:
    """Return the separator that a text contains on a line of its own, "" if there is none."""
    is_there = SECTION_SIGN in text and any(line.strip() == SECTION_SIGN for line in text.split("\n"))
    return SECTION_SIGN if is_there else ""


def split_entries(text: str, separator: str) -> list[SeparatedEntry]:
    """Return the entries of a document in order, without empty ones."""
    entries: list[SeparatedEntry] = []
    lines: list[str] = []
    start = 1
    for number, line in enumerate([*text.split("\n"), separator], 1):
        if line.strip() == separator:
            if content := "\n".join(lines).strip():
                entries.append(SeparatedEntry(content, start))
            lines = []
        elif lines or line.strip():
            start = start if lines else number
            lines.append(line)
    return entries


def join_entries(entries: Iterable[str], separator: str) -> str:
    """Return entries as a document, without a separator at its end."""
    return f"\n{separator}\n".join(entries)


def without_entries(text: str, separator: str, lines: Collection[int]) -> str:
    """Return a document without the entries that start at the given lines."""
    return join_entries([one.text for one in split_entries(text, separator) if one.line not in lines], separator)


def with_entry(text: str, separator: str, entry: str, *, at: int | None = None) -> str:
    """Return a document with an entry at its end, or instead of the one that starts at a line."""
    entries = split_entries(text, separator)
    texts = [entry if one.line == at else one.text for one in entries]
    return join_entries(texts if at is not None else [*texts, entry], separator)
