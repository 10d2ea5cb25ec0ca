"""Attribute the lines of a text to the versions that introduced them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memoryhub.lib.text.diff import line_changes


def blame(texts: Iterable[str]) -> list[int]:
    """Return, for each line of the last text, the index of the text that introduced it.

    ``texts``: the versions of one document, oldest first. A line that was removed and restored counts from then.
    """
    lines: Sequence[str] = []
    origins: list[int] = []
    for number, text in enumerate(texts):
        new = text.split("\n")
        kept: list[int] = []
        for tag, start, end, j, j_end in line_changes(lines, new):
            kept += origins[start:end] if tag == "equal" else [number] * (j_end - j)
        lines, origins = new, kept
    return origins
