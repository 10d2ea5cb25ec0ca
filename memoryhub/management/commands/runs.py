from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from memoryhub.as_json import run_document
from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import NotFound
from memoryhub.management.json_command import JsonCommand
from memoryhub.runs.executing import undo_run
from memoryhub.runs.review import approve_run, flagged_text
from sessions_app.models import Run
from sessions_app.services.audit import Actor, By
from sessions_app.services.runs import cancel_run, dismiss_run, retry_run

COMMAND = Actor("command", "runs")
ACTIONS = ("list", "show", "undo", "retry", "fold", "cancel", "skip", "dismiss", "approve")


class Command(JsonCommand):
    help = "List and show runs, and undo, retry, fold (compress by rule), skip, cancel, dismiss or approve them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", nargs="?", choices=ACTIONS, default="list", help="what to do")
        parser.add_argument("numbers", nargs="*", type=int, help="numbers of runs (see list)")
        parser.add_argument("--workspace", help="for list: only this workspace")
        parser.add_argument("--status", choices=Run.Status.values, help="for list: only this status")
        parser.add_argument("--limit", type=int, default=50, help="for list: number of runs")
        parser.add_argument("--note", default="", help="why a run is dismissed or skipped")

    def run(
        self,
        *,
        action: str,
        numbers: list[int],
        workspace: str | None,
        status: str | None,
        limit: int,
        note: str,
        **_options: Any,
    ) -> dict[str, Any]:
        if action == "list":
            return {"runs": [run_document(run) for run in _listed(workspace, status, limit)]}
        runs = [_found(number) for number in numbers or [0]]
        flagged = sum(_decide(run, action, note) for run in runs)
        return {"runs": [run_document(_found(run.pk)) for run in runs], "flagged_waiting": flagged}

    def show(self, result: dict[str, Any]) -> None:
        if result.get("flagged_waiting"):
            self.line(flagged_text(result["flagged_waiting"]))
        for run in result["runs"]:
            cost = f", ${run['cost']}" if run["cost"] else ""
            self.line(
                f"{run['id']:>6}  {run['status']:<12} {run['kind']:<14} {run['workspace']}/{run['session'] or ''} "
                f"#{run['from']} to #{run['to']}, {run['tokens']:,} tokens{cost}"
            )
            if run["error"]:
                self.line(f"        {run['error']}")
            for line in (run["text"] or "").splitlines() if len(result["runs"]) == 1 else []:
                self.line(f"        {line}")


def _found(number: int) -> Run:
    run = Run.objects.select_related("workspace", "session").filter(pk=number).first()
    if run is None:
        raise NotFound(f"There is no run {number}. See `runs list`.")
    return run


def _listed(workspace: str | None, status: str | None, limit: int) -> list[Run]:
    runs = Run.objects.select_related("workspace", "session").order_by("-id")
    if workspace:
        runs = runs.filter(workspace=find_workspace(workspace))
    if status:
        runs = runs.filter(status=status)
    return list(runs[: max(1, limit)])


def _decide(run: Run, action: str, note: str) -> int:
    """Apply an action to a run; return how many flagged parts of its change still wait for a decision."""
    now = timezone.now()
    if action == "undo":
        undo_run(run, by=By(COMMAND, now))
    elif action in ("retry", "fold"):
        changed = {"method": "heuristic"} if action == "fold" else {}
        retry_run(run, by=By(COMMAND, now), **changed)
    elif action == "skip":
        retry_run(run, by=By(COMMAND, now), method="heuristic", note=note or "no reason given")
    elif action == "cancel":
        cancel_run(run, by=By(COMMAND, now))
    elif action == "dismiss":
        dismiss_run(run, note=note or "no reason given", by=By(COMMAND, now))
    elif action == "approve":
        return approve_run(run, by=By(COMMAND, now))
    return 0
