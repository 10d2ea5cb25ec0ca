"""Build the demo's workspaces as if the hub had run for four months: stage by stage, with the hub's own code."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

from django.conf import settings

from memoryhub.demo import WRITERS, write_agent
from memoryhub.demo.events import happen_after_import, happen_between
from memoryhub.demo.script import moment
from memoryhub.demo.work import FIRST_DAY
from memoryhub.jobs.queue import LIVE
from memoryhub.models import Job
from memoryhub.sync.import_requests import import_now
from memoryhub.sync.importing import import_workspace
from sessions_app.models import ImportReport, Workspace
from sessions_app.services.audit import By

STAGES = (-84, -56, -35, -21, -9, 0)  # days from the story's last day on which the hub imports
CLOCK = "18:00"
BEFORE_NOW = timedelta(minutes=40)  # the last import, so that what follows isn't in the future
Step = Callable[[int, int, str], None]  # done, total, name


@dataclass
class BuiltWorkspace:
    """A workspace of the demo. ``added``: rows by kind."""

    name: str
    path: Path
    workspace: Workspace | None = None
    is_new: bool = True
    added: Counter[str] = field(default_factory=Counter)


def build_demo(*, by: By, step: Step = lambda _done, _total, _name: None) -> list[BuiltWorkspace]:
    """Write the agents' folders to MEMORYHUB_HOME and build their workspaces; return them.

    The story ends on the day of the first call. A workspace that exists is only imported again, which adds nothing.
    """
    last_day = _last_day(by.at.date())
    built = [BuiltWorkspace(name, demo_folder() / name.lower()) for name in WRITERS]
    for one in built:
        one.is_new = not Workspace.objects.filter(path=str(one.path)).exists()
    stages = [(offset, one) for offset in STAGES for one in built if one.is_new or offset == 0]
    for done, (offset, one) in enumerate(stages):
        step(done, len(stages), one.name)
        _carry_out(one, offset, last_day, by)
    return built


def _carry_out(one: BuiltWorkspace, offset: int, last_day: date, by: By) -> None:
    """Import the agent's folder as it was on a day, after what happened in the hub since the stage before."""
    days = range(STAGES[STAGES.index(offset) - 1] if offset != STAGES[0] else FIRST_DAY, offset)
    if one.is_new and one.workspace:
        happen_between(one.name, one.workspace, days, last_day)
    write_agent(one.name, one.path, today=last_day, offset=offset)
    at = moment(last_day, offset, CLOCK) if offset else by.at - (BEFORE_NOW if one.is_new else timedelta())
    _set_times(one.path, at - timedelta(minutes=5))
    if offset:
        result = import_workspace(one.path, by=By(by.actor, at), name=one.name)
    else:
        report = ImportReport.objects.create(path=str(one.path), name=one.name, created_at=at)
        result = import_now(report, by=By(by.actor, at))
    one.workspace = result.workspace
    one.added.update(+result.tally.added)
    if one.is_new:
        happen_after_import(one.name, one.workspace, days, last_day, at + timedelta(minutes=5))


def _set_times(folder: Path, at: datetime) -> None:
    """Date files that were just written, so that the import doesn't wait for their program to finish."""
    for file in folder.rglob("*"):
        if file.is_file() and file.stat().st_mtime > at.timestamp():
            os.utime(file, (at.timestamp(), at.timestamp()))


def is_demo_built() -> bool:
    """Return whether all workspaces of the demo exist."""
    paths = [str(demo_folder() / name.lower()) for name in WRITERS]
    return Workspace.objects.filter(path__in=paths).count() == len(paths)


def is_demo_offered() -> bool:
    """Return whether the demo can be created: not while a job does, and not once it is complete."""
    latest = Job.objects.filter(kind=Job.Kind.DEMO).order_by("-pk").first()
    if latest is not None and latest.status in LIVE:
        return False
    return not is_demo_built() or (latest is not None and latest.status != Job.Status.DONE)


def demo_folder() -> Path:
    folder: Path = settings.MEMORYHUB_HOME / "agents" / "demo"
    return folder


def _last_day(today: date) -> date:
    file = demo_folder() / "last-day"
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_text(today.isoformat())
    return date.fromisoformat(file.read_text())
