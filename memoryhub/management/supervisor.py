"""Keep a child process running beside this one, and leave none behind."""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

logger = logging.getLogger(__name__)

FIRST_PAUSE = 1.0  # seconds before a new start, doubled for each one that fails soon
LONGEST_PAUSE = 60.0
STEADY_AFTER = 60.0  # a child that ran this long had a good start
LAST_WAIT = 10.0  # for a child that was asked to end; longer than worker.PATIENCE_SECONDS


@contextmanager
def keep_running(command: Sequence[str], *, folder: Path) -> Iterator[None]:
    """Keep `command` running in `folder` for the length of the block; start it again, ever later, when it ends.

    The child holds the reading end of a pipe as its standard input, and has to end when that closes: at the end of
    the block, and just as well when this process is killed. It has a session of its own, so that Ctrl-C in a terminal
    reaches this process alone, which then ends the child in order.
    """
    stopping = threading.Event()
    supervisor = threading.Thread(target=_supervise, args=(command, folder, stopping), name="supervisor")
    supervisor.start()
    try:
        yield
    finally:
        stopping.set()
        supervisor.join()


def _supervise(command: Sequence[str], folder: Path, stopping: threading.Event) -> None:
    pause = FIRST_PAUSE
    while not stopping.is_set():
        began = time.monotonic()
        outcome = _run(command, folder, stopping)
        if stopping.is_set():
            return
        if time.monotonic() - began > STEADY_AFTER:
            pause = FIRST_PAUSE
        logger.warning("The worker ended (%s); it starts again in %.0f s.", outcome, pause)
        stopping.wait(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def _run(command: Sequence[str], folder: Path, stopping: threading.Event) -> str:
    """Run the child to its end, or to ours; return how it ended."""
    try:
        child = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603
    except OSError as problem:
        return str(problem)
    with child:
        while child.poll() is None and not stopping.wait(0.2):
            pass
        _end(child)
    return f"status {child.returncode}"


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.stdin:
        child.stdin.close()
    try:
        child.wait(LAST_WAIT)
    except subprocess.TimeoutExpired:
        child.kill()
