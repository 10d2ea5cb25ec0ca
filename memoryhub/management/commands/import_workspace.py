from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils import timezone

from memoryhub.as_json import import_json
from memoryhub.lib.problem_groups import problem_lines
from memoryhub.lib.safe_folder import display_path
from memoryhub.management.json_command import JsonCommand
from memoryhub.management.progress_bar import progress_bar
from memoryhub.models import Process
from memoryhub.processes import registered
from memoryhub.sync.import_requests import run_import
from memoryhub.sync.importing import import_workspace
from sessions_app.models import ImportReport
from sessions_app.models.workspaces import program_label
from sessions_app.services.audit import Actor, By

LAYOUTS = ("auto", "nanobot", "grip", "grid", "agterm", "hub")
COMMAND = Actor("command", "import_workspace")


class Command(JsonCommand):
    stopped = "Stopped. What was imported so far is kept. Run the command again to continue."
    help = "Import an agent's folder, an AgTerm export or an archive. Can be repeated; never deletes anything."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("path", help="the folder, file or archive")
        parser.add_argument("--layout", choices=LAYOUTS, default="auto", help="the program that wrote it")
        parser.add_argument("--name", default="", help="name of a new workspace")
        parser.add_argument("--dry-run", action="store_true", help="only show what would be imported")

    def run(self, *, path: str, layout: str, name: str, dry_run: bool, **_options: Any) -> dict[str, Any]:
        folder = Path(path).expanduser().resolve()
        now = timezone.now()
        if dry_run:
            result = import_workspace(
                folder, by=By(COMMAND, now), name=name, layout=layout, dry_run=True, progress=progress_bar("files")
            )
        else:
            report = ImportReport.objects.create(path=display_path(str(folder)), name=name, wanted_layout=layout)
            with registered(Process.Kind.COMMAND):
                result = run_import(report, by=By(COMMAND, now), progress=progress_bar("files"))
        return import_json(result.workspace, result.found, result.tally) | {"dry_run": dry_run}

    def show(self, result: dict[str, Any]) -> None:
        words = "Would import" if result["dry_run"] else "Imported"
        self.line(f"{words} {result['workspace']} ({program_label(result['layout'], result['version'])})")
        for word in ("added", "updated", "unchanged"):
            counts = ", ".join(f"{count:,} {kind}" for kind, count in result[word].items())
            self.line(f"  {word}: {counts or 'nothing'}")
        for line in problem_lines(result["problems"]):
            self.line(f"  {line}")
