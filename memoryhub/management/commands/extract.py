from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils import timezone

from knowledge_app.models import Confirmation, Observation
from memoryhub.as_json import observation_document, run_document
from memoryhub.find_by_name import find_workspace
from memoryhub.management.json_command import JsonCommand
from memoryhub.runs.executing import complete
from memoryhub.runs.extract import request_extraction
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "extract")


class Command(JsonCommand):
    help = "Extract findings, insights and lessons from the output of an agent's step, and store them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("--source", default="", help="GOAL:step-name, stored with each observation")
        parser.add_argument("--file", help="file with the output (default: standard input)")

    def run(self, *, workspace: str, source: str, file: str | None, **_options: Any) -> dict[str, Any]:
        found = find_workspace(workspace)
        text = Path(file).read_text(encoding="utf-8-sig", errors="replace") if file else sys.stdin.read()
        run = complete(
            request_extraction(found, text, source=source, by=By(COMMAND, timezone.now())), now=timezone.now
        )
        added = Observation.objects.filter(run=run).select_related("hold").order_by("id")
        offered = Confirmation.objects.filter(run=run).select_related("observation").order_by("id")
        document = run_document(run) | {
            "added": [observation_document(row) for row in added],
            "offered": [
                {"id": row.pk, "content": row.content, "known": row.observation.content, "similarity": row.similarity}
                for row in offered
            ],
            "left_out": run.proposal.get("left_out", 0),
        }
        return {"runs": [document]}

    def show(self, result: dict[str, Any]) -> None:
        for run in result["runs"]:
            self.line(f"{run['status'].replace('_', ' ')}{': ' + run['error'] if run['error'] else ''}")
            for row in run["added"]:
                self.line(f"  {row['category']}: {row['content']}")
            for row in run["offered"]:
                self.line(f"  similar to {row['known']!r}: {row['content']}")
