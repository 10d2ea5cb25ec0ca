"""Cells that a spreadsheet would run as a formula: made plain text on the way out, as they were on the way in."""

from __future__ import annotations

import unicodedata

STARTS = frozenset("=+-@")
BREAKS = frozenset("\t\r\n")
GUARD = "'"


def guard(text: str) -> str:
    """Return the text as a cell that no spreadsheet runs: with an apostrophe before it where it needs one."""
    return GUARD + text if is_formula(text) else text


def unguard(text: str) -> str:
    """Return the text of a cell that ``guard`` wrote: ``unguard(guard(text)) == text`` for every text."""
    return text[1:] if text.startswith(GUARD) and is_formula(text[1:]) else text


def is_formula(text: str) -> bool:
    """Tell whether a spreadsheet might run a cell: it begins with one of = + - @, also in their wide and small
    forms and after blanks, or with a tab or a line break.

    Apostrophes before it are looked through, so that a text which has one by itself gets another.
    """
    rest = 0
    while rest < len(text) and (text[rest] == GUARD or _is_blank(text[rest])):
        rest += 1
    if not BREAKS.isdisjoint(text[:rest]):
        return True
    return rest < len(text) and unicodedata.normalize("NFKC", text[rest])[:1] in STARTS


def _is_blank(letter: str) -> bool:
    """Tell whether a letter is nothing to see: a space of any kind, or a control or format character."""
    return letter.isspace() or unicodedata.category(letter) in ("Cc", "Cf", "Zs")
