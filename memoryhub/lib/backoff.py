"""Growing pauses after repeated failures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Backoff:
    """Pauses in seconds: ``first`` after one failure, then doubled after each, up to ``longest``."""

    first: float
    longest: float
    failures: int = 0  # in a row

    def next_pause(self) -> float:
        """Count a failure; return the pause after it."""
        self.failures += 1
        return min(self.first * 2.0 ** min(self.failures - 1, 30), self.longest)

    def reset(self) -> None:
        self.failures = 0
