from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from memoryhub.jobs.listing import Piece, import_piece, job_piece, list_work, run_piece
from memoryhub.jobs.queue import cancel_job
from memoryhub.lib.errors import NotFound
from memoryhub.management.json_command import JsonCommand
from memoryhub.models import Job
from memoryhub.sync.import_requests import cancel_import
from sessions_app.models import ImportReport, Run, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.runs import cancel_run

COMMAND = Actor("command", "work")
NO_WORKER = "no worker is running here: start one with `python3 manage.py worker`"


class Command(JsonCommand):
    help = "List, show or cancel background jobs that are running, waiting or finished within a day."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "action", nargs="?", choices=("list", "show", "cancel"), default="list", help="what to do"
        )
        parser.add_argument("name", nargs="?", default="", help="a job's number, or a name: import-5, run-7")

    def run(self, *, action: str, name: str, **_options: Any) -> dict[str, Any]:
        if action == "list":
            pieces = list_work(Workspace.objects.all(), of_hub=True, now=timezone.now())
            return {"work": [_document(piece) for piece in pieces]}
        piece = _find(name)
        if action == "cancel":
            _cancel(piece)
            piece = _find(name)
        return {"work": [_document(piece)]}

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


def _find(name: str) -> Piece:
    table, _, number = name.rpartition("-")
    now = timezone.now()
    pk = int(number) if number.isdecimal() else 0
    if table in ("", "job") and (job := Job.objects.select_related("workspace").filter(pk=pk).first()):
        return job_piece(job, now)
    if table == "import" and (report := ImportReport.objects.select_related("workspace").filter(pk=pk).first()):
        return import_piece(report, now)
    if table == "run" and (run := Run.objects.select_related("workspace").filter(pk=pk).first()):
        return run_piece(run, now)
    raise NotFound(f"There is no job {name!r}. See `work list`.")


def _cancel(piece: Piece) -> None:
    cancel: dict[str, Any] = {"job": cancel_job, "import": cancel_import, "run": cancel_run}
    cancel[piece.table](piece.row, by=By(COMMAND, timezone.now()))


def _document(piece: Piece) -> dict[str, Any]:
    return {
        "name": piece.name,
        "kind": piece.kind,
        "workspace": piece.workspace.slug if piece.workspace else None,
        "status": piece.status,
        "cancelling": piece.is_cancelling,
        "done": piece.done,
        "total": piece.total,
        "unit": piece.unit or None,
        "stage": piece.stage or None,
        "seconds_left": piece.seconds_left,
        "stranded": piece.is_stranded,
        "requested_by": piece.requested_by or None,
        "created_at": piece.created_at,
        "started_at": piece.started_at,
        "finished_at": piece.finished_at,
        "result": piece.row.result if isinstance(piece.row, Job) else None,
        "error": piece.error or None,
    }
