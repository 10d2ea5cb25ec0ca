"""Job kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from typing import Any, cast

from django.http import HttpRequest

from memoryhub.jobs.progress import Progress
from memoryhub.models import Job

Clock = Callable[[], datetime]
Handler = Callable[[Job, Progress, Clock], dict[str, Any]]  # returns the job's result
ALL = frozenset(("requested", "cancelled", "finished", "failed", "interrupted"))


@dataclass(frozen=True)
class JobKind:
    """``lane``: a worker runs the jobs of a lane one after another, and those of different lanes in parallel.

    ``pauses``: before each retry after ``TryAgain``. ``every``: the interval of a recurring job. ``on_end``: called
    in the transaction that ends a job. ``is_cancellable``: whether a running job can be cancelled. ``noun``,
    ``audited``: object and verbs of its audit records. ``is_listed``: whether pages show it. ``details``: further
    context of its page.
    """

    carry_out: Handler
    lane: str
    label: str
    max_takeovers: int = 3  # the job itself may crash its workers
    pauses: tuple[timedelta, ...] = ()
    every: timedelta | None = None
    on_end: Callable[[Job, datetime], None] = lambda _job, _now: None
    is_cancellable: Callable[[Job], bool] = lambda _job: True
    noun: str = "job"
    audited: frozenset[str] = frozenset()
    is_listed: bool = True
    details: Callable[[HttpRequest, Job], dict[str, Any]] = lambda _request, _job: {}


@cache
def kinds() -> dict[str, JobKind]:
    """Return the job kinds by name. They are loaded on first use, because their handlers import most of the hub."""
    return cast("dict[str, JobKind]", import_module("memoryhub.job_handlers").KINDS)


def lanes() -> dict[str, list[str]]:
    """Return the names of job kinds by lane."""
    found: dict[str, list[str]] = {}
    for name, kind in kinds().items():
        found.setdefault(kind.lane, []).append(name)
    return found


def listed_kinds() -> list[str]:
    return [name for name, kind in kinds().items() if kind.is_listed]
