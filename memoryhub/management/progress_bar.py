"""How far a command is, drawn on a terminal's standard error; nothing where that is a file or a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

BAR_WIDTH = 30
WIDTH = 110
DRAWN_EVERY = 0.1  # seconds


def drawn(unit: str) -> Callable[[int, int, str], None]:
    """Return what draws a bar: called with how many are done, of how many, and what is at hand."""
    drawn_at = 0.0

    def draw(done: int, total: int, stage: str) -> None:
        nonlocal drawn_at
        if not sys.stderr.isatty() or (done < total and time.monotonic() - drawn_at < DRAWN_EVERY):
            return
        drawn_at = time.monotonic()
        filled = BAR_WIDTH * done // total if total else 0
        bar = f"{'█' * filled}{'░' * (BAR_WIDTH - filled)} {done:,}/{total:,} {unit}  {stage}"
        printable = "".join(letter if letter.isprintable() else "?" for letter in bar)
        sys.stderr.write(f"\r{printable[:WIDTH]:<{WIDTH}}")
        sys.stderr.flush()

    return draw


def wipe() -> None:
    """Take the bar away."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{'':<{WIDTH}}\r")
        sys.stderr.flush()
