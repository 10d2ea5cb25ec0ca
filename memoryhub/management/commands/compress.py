from __future__ import annotations

from argparse import ArgumentParser
from contextlib import suppress
from typing import Any

from django.utils import timezone

from memoryhub.as_json import run_document
from memoryhub.find_by_name import find_session, find_workspace
from memoryhub.management.json_command import JsonCommand
from memoryhub.management.progress_bar import progress_bar
from memoryhub.runs.compress import draft
from memoryhub.runs.compress_all import due_sessions
from memoryhub.runs.executing import complete
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.runs import RunNotFitting, cancel_run, request_run

COMMAND = Actor("command", "compress")


class Command(JsonCommand):
    help = "Replace old entries of a session with a summary; without a session, of all sessions over their limits."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("session_key", nargs="?", help="the session's key")
        parser.add_argument("--keep", type=int, help="number of latest entries to keep (default: the recent window)")
        parser.add_argument(
            "--method",
            choices=("auto", "llm", "heuristic"),
            default="auto",
            help="llm: by a model; heuristic: by rule; auto: by a model if one is configured",
        )
        parser.add_argument("--hold", action="store_true", help="hold the summary for `runs approve`")
        parser.add_argument(
            "--dry-run", action="store_true", help="show the plan and the summary, but change nothing"
        )
        parser.add_argument("--prompt", default="", help="instructions for the model (default: the workspace's)")

    def run(
        self,
        *,
        workspace: str,
        session_key: str | None,
        keep: int | None,
        method: str,
        hold: bool,
        dry_run: bool,
        prompt: str,
        **_options: Any,
    ) -> dict[str, Any]:
        found = find_workspace(workspace)
        sessions = [find_session(found, session_key)] if session_key is not None else _due(found)
        if keep is not None and keep < 1:
            keep = 1
        if dry_run:
            return {"dry_run": True, "runs": [_planned(session, keep, method, prompt) for session in sessions]}
        options: dict[str, Any] = {"method": method, "once": True, "hold": hold}
        options |= {} if keep is None else {"keep": keep}
        options |= {"prompt": prompt} if prompt else {}
        return {"dry_run": False, "runs": self._compress_all(sessions, options)}

    def _compress_all(self, sessions: list[Session], options: dict[str, Any]) -> list[dict[str, Any]]:
        draw, runs = progress_bar("sessions"), []
        for number, session in enumerate(sessions):
            draw(number, len(sessions), session.key)
            self.stopped = f"Stopped: {number:,} of {len(sessions):,} sessions are compressed."
            runs.append(run_document(_compress(session, options)))
        return runs

    def show(self, result: dict[str, Any]) -> None:
        if not result["runs"]:
            self.line("No session is over its limits.")
        for run in result["runs"]:
            place = f"{run['session']}: "
            if run["error"]:
                self.line(f"{place}{run['status'].replace('_', ' ')}: {run['error']}")
                continue
            words = "would compress" if result["dry_run"] else {"held": "held"}.get(run["status"], "compressed")
            sizes = f"{run['before']:,} → {run['after']:,} tokens" if run["after"] is not None else ""
            self.line(f"{place}{words} #{run['from']} to #{run['to'] - 1} ({run['method']}) {sizes}".rstrip())
            for line in (run["text"] or "").splitlines():
                self.line(f"  {line}")


def _due(workspace: Workspace) -> list[Session]:
    return list(due_sessions(workspace).select_related("workspace"))


def _planned(session: Session, keep: int | None, method: str, prompt: str) -> dict[str, Any]:
    shown = draft(session, method=method, keep=keep, prompt=prompt)
    document: dict[str, Any] = {"id": None, "session": session.key, "error": shown.plan.reason or None, "tokens": 0}
    if shown.plan.reason:
        return document | {"status": "nothing_due", "from": 0, "to": 0}
    before = session.active_tokens + session.summary_tokens
    return document | {
        "status": "planned",
        "from": shown.plan.first_position,
        "to": shown.plan.last_position + 1,
        "tokens": shown.tokens,
        "method": shown.method,
        "before": before,
        "after": before - shown.plan.original_tokens + shown.summary_tokens,
        "text": shown.text,
    }


def _compress(session: Session, options: dict[str, Any]) -> Run:
    run, _ = request_run(session, Run.Kind.COMPRESSION, options=options, by=By(COMMAND, timezone.now()))
    try:
        return complete(run, now=timezone.now)
    except KeyboardInterrupt:
        with suppress(RunNotFitting):
            cancel_run(run, by=By(COMMAND, timezone.now()))
        raise
