from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from knowledge_app.services.rows.scratchpads import end_run
from memoryhub.find_by_name import find_workspace
from memoryhub.management.json_command import JsonCommand
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "scratch")


class Command(JsonCommand):
    help = "End the run of a scratchpad: permanently delete its memory, but keep its sessions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=("end",), help="what to do")
        parser.add_argument("workspace", help="slug or name of the workspace")

    def run(self, *, workspace: str, **_options: Any) -> dict[str, Any]:
        return {"removed": end_run(find_workspace(workspace), by=By(COMMAND, timezone.now()))}

    def show(self, result: dict[str, Any]) -> None:
        for name, count in result["removed"].items():
            self.line(f"{count:,} {name}")
        self.line("The run has ended.")
