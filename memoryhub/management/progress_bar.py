"""A progress bar on standard error; nothing is printed if that isn't a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

BAR_WIDTH = 30
WIDTH = 110
REDRAW_SECONDS = 0.1


def progress_bar(unit: str) -> Callable[[int, int, str], None]:
    """Return a function that draws the bar, given the number done, the total and the current item."""
    drawn_at = 0.0

    def draw(done: int, total: int, stage: str) -> None:
        nonlocal drawn_at
        if not sys.stderr.isatty() or (done < total and time.monotonic() - drawn_at < REDRAW_SECONDS):
            return
        drawn_at = time.monotonic()
        filled = BAR_WIDTH * done // total if total else 0
        bar = f"{'█' * filled}{'░' * (BAR_WIDTH - filled)} {done:,}/{total:,} {unit}  {stage}"
        printable = "".join(letter if letter.isprintable() else "?" for letter in bar)
        sys.stderr.write(f"\r{printable[:WIDTH]:<{WIDTH}}")
        sys.stderr.flush()

    return draw


def clear() -> None:
    """Remove the bar from the terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{'':<{WIDTH}}\r")
        sys.stderr.flush()
