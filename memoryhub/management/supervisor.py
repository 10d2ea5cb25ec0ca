"""Keep a child process running next to this one, and stop it with this one."""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from memoryhub.lib.backoff import Backoff

logger = logging.getLogger(__name__)

FIRST_PAUSE = 1.0  # seconds before a restart; doubled after each quick failure
LONGEST_PAUSE = 60.0
STEADY_AFTER = 60.0  # seconds after which a child's start counts as successful
LAST_WAIT = 10.0  # seconds for a child to stop; longer than worker.PATIENCE_SECONDS


@contextmanager
def keep_running(command: Sequence[str], *, folder: Path) -> Iterator[None]:
    """Run `command` in `folder` during the block, and restart it with increasing delays if it ends.

    The child's standard input is a pipe, and the child must end when the pipe closes. That happens at the end of the
    block, and also if this process is killed. The child has its own session, so that Ctrl-C in a terminal reaches
    only this process, which then stops the child.
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
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
    while not stopping.is_set():
        began = time.monotonic()
        outcome = _run(command, folder, stopping)
        if stopping.is_set():
            return
        if time.monotonic() - began > STEADY_AFTER:
            backoff.reset()
        pause = backoff.next_pause()
        logger.warning("The worker ended (%s) and will be restarted in %.0f s.", outcome, pause)
        stopping.wait(pause)


def _run(command: Sequence[str], folder: Path, stopping: threading.Event) -> str:
    """Run the child until it ends or ``stopping`` is set; return how it ended."""
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
