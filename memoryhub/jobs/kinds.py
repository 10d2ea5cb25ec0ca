"""Kinds of jobs: how each is carried out, in which lane, and what the queue does when it fails or ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memoryhub.jobs.progress import Progress
from memoryhub.models import Job

Clock = Callable[[], datetime]
Handler = Callable[[Job, Progress, Clock], dict[str, Any]]  # returns the job's result
ALL = frozenset(("requested", "cancelled", "finished", "failed", "interrupted"))
NONE: frozenset[str] = frozenset()
KINDS: dict[str, JobKind] = {}  # memoryhub.job_handlers fills it when the hub starts


@dataclass(frozen=True)
class JobKind:
    """``lane``: jobs of one lane run one after another in a worker, those of different lanes at once.

    ``pauses``: before each further attempt of one that failed with ``TryAgain``. ``every``: it is queued again for so
    long after its end. ``on_end``: called in the transaction that ends a job. ``is_cancellable``: whether one
    that runs can be cancelled. ``noun``, ``audited``: object and verbs of its audit records. ``is_listed``: whether
    pages show it.
    """

    carry_out: Handler
    lane: str
    label: str
    max_takeovers: int = 3  # of workers that died in the middle: it may be what kills them
    pauses: tuple[timedelta, ...] = ()
    every: timedelta | None = None
    on_end: Callable[[Job, datetime], None] = lambda _job, _now: None
    is_cancellable: Callable[[Job], bool] = lambda _job: True
    noun: str = "job"
    audited: frozenset[str] = NONE
    is_listed: bool = True


def lanes() -> dict[str, list[str]]:
    """Return the kinds of each lane."""
    found: dict[str, list[str]] = {}
    for name, kind in KINDS.items():
        found.setdefault(kind.lane, []).append(name)
    return found


def listed_kinds() -> list[str]:
    return [name for name, kind in KINDS.items() if kind.is_listed]
