from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from memoryhub.jobs.kinds import listed_kinds
from memoryhub.jobs.listing import WorkItem, job_item, list_work, run_item
from memoryhub.jobs.queue import cancel_job
from memoryhub.lib.errors import NotFound
from memoryhub.management.json_command import JsonCommand
from memoryhub.models import Job
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.runs import cancel_run

COMMAND = Actor("command", "work")
NO_WORKER = "no worker is running here: start one with `python3 manage.py worker`"


class Command(JsonCommand):
    help = "List, show or cancel background jobs that are running, waiting or finished within a day."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "action", nargs="?", choices=("list", "show", "cancel"), default="list", help="what to do"
        )
        parser.add_argument("name", nargs="?", default="", help="a job's number, or a name: import-5, run-7")

    def run(self, *, action: str, name: str, **_options: Any) -> dict[str, Any]:
        if action == "list":
            items = list_work(Workspace.objects.all(), of_hub=True, now=timezone.now())
            return {"work": [_document(item) for item in items]}
        item = _find(name)
        if action == "cancel":
            _cancel(item)
            item = _find(name)
        return {"work": [_document(item)]}

    def show(self, result: dict[str, Any]) -> None:
        if not result["work"]:
            self.line("No background jobs.")
        for one in result["work"]:
            far = f" {one['done']:,} of {one['total']:,} {one['unit']}" if one["total"] else ""
            place = f" of {one['workspace']}" if one["workspace"] else ""
            left = f", about {one['seconds_left']} s left" if one["seconds_left"] is not None else ""
            state = "cancelling" if one["cancelling"] else one["status"]
            self.line(f"{one['name']:<14} {state:<10} {one['kind']}{place}{far}{left}  {one['stage'] or ''}".rstrip())
            if one["error"] or one["stranded"]:
                self.line(f"{'':<15}{one['error'] or NO_WORKER}")


def _find(name: str) -> WorkItem:
    table, _, number = name.rpartition("-")
    now = timezone.now()
    pk = int(number) if number.isdecimal() else 0
    jobs = Job.objects.select_related("workspace").filter(kind__in=listed_kinds())
    found = jobs.filter(import_report=pk) if table == "import" else jobs.filter(pk=pk)
    if table in ("", "job", "import") and (job := found.first()):
        return job_item(job, now)
    if table == "run" and (run := Run.objects.select_related("workspace").filter(pk=pk).first()):
        return run_item(run, now)
    raise NotFound(f"There is no job {name!r}. See `work list`.")


def _cancel(item: WorkItem) -> None:
    cancel: Callable[..., object] = cancel_run if item.table == "run" else cancel_job
    cancel(item.row, by=By(COMMAND, timezone.now()))


def _document(item: WorkItem) -> dict[str, Any]:
    return {
        "name": item.name,
        "kind": item.kind,
        "workspace": item.workspace.slug if item.workspace else None,
        "status": item.status,
        "cancelling": item.is_cancelling,
        "done": item.done,
        "total": item.total,
        "unit": item.unit or None,
        "stage": item.stage or None,
        "seconds_left": item.seconds_left,
        "stranded": item.is_stranded,
        "requested_by": item.requested_by or None,
        "created_at": item.created_at,
        "started_at": item.started_at,
        "finished_at": item.finished_at,
        "result": item.row.result if item.table == "job" else None,
        "error": item.error or None,
    }
