from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from knowledge_app.services.documents.consolidation import is_due
from memoryhub.as_json import run_document
from memoryhub.find_by_name import find_session, find_workspace
from memoryhub.lib.text.diff import diff_texts
from memoryhub.management.json_command import JsonCommand
from memoryhub.runs.consolidate import preview
from memoryhub.runs.executing import complete
from sessions_app.models import Run, Session
from sessions_app.services.audit import Actor, By
from sessions_app.services.runs import request_run

COMMAND = Actor("command", "consolidate")


class Command(JsonCommand):
    help = "Move facts from a session, or from all due sessions, to MEMORY.md and the history."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", nargs="?", help="slug or name of the workspace (default: all)")
        parser.add_argument("session_key", nargs="?", help="the session's key")
        parser.add_argument("--due", action="store_true", help="only if it is due")
        parser.add_argument(
            "--archive-all", action="store_true", help="consolidate all entries, including the latest"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="ask the model and show its proposal, but change nothing"
        )

    def run(
        self,
        *,
        workspace: str | None,
        session_key: str | None,
        due: bool,
        archive_all: bool,
        dry_run: bool,
        **_options: Any,
    ) -> dict[str, Any]:
        sessions = _chosen(workspace, session_key)
        if due or session_key is None:
            sessions = [session for session in sessions if archive_all or is_due(session)]
        if dry_run:
            return {"dry_run": True, "runs": [_preview(session, archive_all=archive_all) for session in sessions]}
        options = {"once": True, "archive_all": archive_all}
        return {"dry_run": False, "runs": [run_document(_consolidate(session, options)) for session in sessions]}

    def show(self, result: dict[str, Any]) -> None:
        if not result["runs"]:
            self.line("No session is due.")
        for run in result["runs"]:
            place = f"{run['session']}: {run['status'].replace('_', ' ')}"
            self.line(f"{place}, #{run['from']} to #{run['to'] - 1}" if run["to"] else place)
            for words in [run["error"], *run.get("flags", [])]:
                if words:
                    self.line(f"  {words}")
            for line in run.get("diff", []):
                self.line(f"  {line}")
            if run.get("history"):
                self.line(f"  history: {run['history']}")


def _chosen(workspace: str | None, key: str | None) -> list[Session]:
    sessions = Session.objects.select_related("workspace").order_by("id")
    if workspace is None:
        return list(sessions)
    found = find_workspace(workspace)
    return [find_session(found, key)] if key is not None else list(sessions.filter(workspace=found))


def _consolidate(session: Session, options: dict[str, Any]) -> Run:
    run, _ = request_run(session, Run.Kind.CONSOLIDATION, options=options, by=By(COMMAND, timezone.now()))
    return complete(run, now=timezone.now)


def _preview(session: Session, *, archive_all: bool) -> dict[str, Any]:
    plan, proposal, run = preview(session, archive_all=archive_all, now=timezone.now)
    document: dict[str, Any] = {"id": None, "session": session.key, "error": plan.reason or None}
    if proposal is None:
        return document | {"status": "nothing_due", "from": 0, "to": 0, "tokens": 0}
    return document | {
        "status": "planned",
        "from": session.last_consolidated,
        "to": plan.end,
        "tokens": run.total_tokens,
        "cost": str(run.cost) if run.cost is not None else None,
        "history": proposal.history,
        "memory": proposal.memory,
        "diff": diff_texts(plan.memory, proposal.memory),
    }
