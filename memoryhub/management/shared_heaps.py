"""Share the C library's heaps between threads, so that a process keeps less of the memory that it has freed."""

from __future__ import annotations

import ctypes
from contextlib import suppress

MOST_HEAPS = 2
_M_ARENA_MAX = -8  # of mallopt(3)


def share_heaps() -> None:
    """Let the threads of this process share two heaps instead of eight for each core. Does nothing without glibc.

    Only one thread at a time runs Python, so that threads hardly wait for a heap. Each keeps what was freed in it.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, MOST_HEAPS)
