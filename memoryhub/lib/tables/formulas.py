"""Escape cells that a spreadsheet would run as formulas."""

from __future__ import annotations

import unicodedata

STARTS = frozenset("=+-@")
BREAKS = frozenset("\t\r\n")
GUARD = "'"


def guard(text: str) -> str:
    """Return text as a cell, prefixed with an apostrophe if a spreadsheet might run it."""
    return GUARD + text if is_formula(text) else text


def unguard(text: str) -> str:
    """Return the text that ``guard`` turned into a cell: ``unguard(guard(text)) == text``."""
    return text[1:] if text.startswith(GUARD) and is_formula(text[1:]) else text


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet might run a cell.

    It starts with =, +, -, @ or their full-width and small forms, possibly after blanks, or with a tab or line break.
    Leading apostrophes are ignored, so that text that starts with one of its own gets another.
    """
    rest = 0
    while rest < len(text) and (text[rest] == GUARD or _is_blank(text[rest])):
        rest += 1
    if not BREAKS.isdisjoint(text[:rest]):
        return True
    return rest < len(text) and unicodedata.normalize("NFKC", text[rest])[:1] in STARTS


def _is_blank(character: str) -> bool:
    """Return whether a character is invisible: a space, control or format character."""
    return character.isspace() or unicodedata.category(character) in ("Cc", "Cf", "Zs")
