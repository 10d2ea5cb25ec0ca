from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils import timezone

from memoryhub.find_by_name import find_workspace
from memoryhub.lib.layouts.coverage import ExportPlan
from memoryhub.lib.layouts.snapshot import LABELS, LAYOUTS
from memoryhub.management.json_command import JsonCommand
from memoryhub.management.progress_bar import progress_bar
from memoryhub.sync.export_plan import plan_export
from memoryhub.sync.exporting import export_workspace
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "export_workspace")


class Command(JsonCommand):
    stopped = "Stopped. Nothing was written."
    help = "Export a workspace as a folder or .zip for another agent or hub, and list what can't be exported."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("dest", help="a new or empty folder, or a new .zip file")
        parser.add_argument("--layout", choices=("auto", *LAYOUTS), default="auto", help="the program to export for")
        parser.add_argument("--dry-run", action="store_true", help="only show what would be written")

    def run(self, *, workspace: str, dest: str, layout: str, dry_run: bool, **_options: Any) -> dict[str, Any]:
        found = find_workspace(workspace)
        if dry_run:
            plan = plan_export(found, layout)
            return _document(
                found.slug, dest, plan, 0, {part.kind: part.count for part in plan.written}, dry_run=True
            )
        report = export_workspace(
            found, Path(dest), layout, by=By(COMMAND, timezone.now()), step=progress_bar("rows")
        )
        return _document(found.slug, dest, report.plan, report.files, report.written, dry_run=False)

    def show(self, result: dict[str, Any]) -> None:
        words = "Would write" if result["dry_run"] else "Wrote"
        files = "" if result["dry_run"] else f" ({result['files']:,} files)"
        self.line(f"{words} {result['workspace']} for {LABELS[result['layout']]}: {result['path']}{files}")
        counts = ", ".join(f"{_words(kind)} {count:,}" for kind, count in result["written"].items())
        self.line(f"  written: {counts or 'nothing'}")
        for part in result["converted"]:
            self.line(f"  converted: {_words(part['kind'])} ({part['count']:,}) {part['how']}")
        for part in result["left_out"]:
            self.line(f"  left out: {_words(part['kind'])} ({part['count']:,}): {part['why']}")
        if result["secrets"]:
            self.line(f"  {result['secrets']:,} of the values look like secrets; they are included unmasked")


def _words(kind: str) -> str:
    return "key-values" if kind == "key_values" else kind.replace("_", " ")


def _document(
    slug: str, dest: str, plan: ExportPlan, files: int, written: dict[str, int], *, dry_run: bool
) -> dict[str, Any]:
    return {
        "workspace": slug,
        "layout": plan.layout,
        "path": dest,
        "files": files,
        "written": written,
        "converted": [{"kind": part.kind, "count": part.count, "how": part.words} for part in plan.converted],
        "left_out": [{"kind": part.kind, "count": part.count, "why": part.words} for part in plan.left_out],
        "secrets": plan.secret_count,
        "dry_run": dry_run,
    }
