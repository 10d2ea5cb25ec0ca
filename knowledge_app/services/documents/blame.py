"""Which state of a text each of its lines came with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memoryhub.lib.text.diff import line_changes


def blame(texts: Iterable[str]) -> list[int]:
    """Return for each line of the last text the number, from 0, of the text that it came with.

    ``texts``: the states of one document, oldest first. A line that went and came back counts from its return.
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
