"""Several web processes: those that end are restarted, with growing pauses if they end at once."""

from __future__ import annotations

import logging
import time
from typing import Any

from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from memoryhub.lib.backoff import Backoff
from memoryhub.management.supervisor import FIRST_PAUSE, LONGEST_PAUSE, STEADY_AFTER

logger = logging.getLogger(__name__)
MAX_QUICK_ENDS = 5  # in a row, while no other process goes on


class WebProcesses(Multiprocess):
    """``failure``: why it stopped by itself, or ""."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.failure = ""
        self._seen_at: dict[int | None, float] = {}  # by process id
        self._noticed: set[int | None] = set()  # ended processes
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        self._failing_since = self._restart_at = 0.0

    def keep_subprocess_alive(self) -> None:
        """Restart processes that have ended. Called every half second."""
        now = time.monotonic()
        for process in self.processes:
            self._seen_at.setdefault(process.pid, now)
            if process.exitcode not in (None, STARTUP_FAILURE) and process.pid not in self._noticed:
                self._noticed.add(process.pid)
                self._note_end(process.exitcode, now - self._seen_at[process.pid], now)
        if not self.failure and now >= self._restart_at:
            super().keep_subprocess_alive()
            if any(process.exitcode == STARTUP_FAILURE for process in self.processes):
                self.failure = "A web process can't start."
        if self.failure:
            self.should_exit.set()

    def _note_end(self, status: int | None, seconds: float, now: float) -> None:
        """Decide when to restart a process that has run for so many ``seconds``."""
        if seconds >= STEADY_AFTER:
            self._backoff.reset()
            return
        if now < self._restart_at:  # another one has ended, too
            return
        pause = self._backoff.next_pause()
        self._restart_at = now + pause
        if self._backoff.failures == 1:
            self._failing_since = now
        others = [process for process in self.processes if process.exitcode is None]
        goes_on = any(self._seen_at.get(process.pid, now) < self._failing_since for process in others)
        if self._backoff.failures >= MAX_QUICK_ENDS and not goes_on:
            self.failure = f"The web processes end soon after they start (status {status})."
        else:
            logger.warning("A web process ended (status %s) and will be restarted in %.0f s.", status, pause)
