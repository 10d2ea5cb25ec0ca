from __future__ import annotations

from typing import Any

from django.utils import timezone

from memoryhub.demo.workspaces import let_the_demo_propose, prepare_demo
from memoryhub.hygiene.scanning import scan_first
from memoryhub.management.json_command import JsonCommand
from memoryhub.models import Process
from memoryhub.processes import registered
from memoryhub.sync.import_requests import run_import
from sessions_app.models import ImportReport
from sessions_app.services.audit import Actor, By


class Command(JsonCommand):
    help = "Create the folders of the demo's agents in MEMORYHUB_HOME and import them."

    def run(self, *_args: Any, **_options: Any) -> dict[str, Any]:
        by = By(Actor("command", "demo"), timezone.now())
        workspaces = []
        for name, path in prepare_demo(timezone.localdate()).items():
            report = ImportReport.objects.create(path=str(path), name=name)
            with registered(Process.Kind.COMMAND):
                result = run_import(report, by=by)
            scan_first(result.workspace, by=by)
            let_the_demo_propose(result.workspace, now=by.at)
            workspaces.append({"workspace": result.workspace.slug, "added": dict(+result.tally.added)})
        return {"workspaces": workspaces}

    def show(self, result: dict[str, Any]) -> None:
        for row in result["workspaces"]:
            counts = ", ".join(f"{count:,} {kind}" for kind, count in row["added"].items())
            self.line(f"{row['workspace']}: {counts or 'nothing new'}")
