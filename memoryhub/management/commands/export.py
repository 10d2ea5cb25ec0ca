from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils import timezone

from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import Invalid
from memoryhub.lib.tables.files import FORMATS
from memoryhub.management.json_command import JsonCommand
from memoryhub.spreadsheets.exporting import EXPORTS, export_table
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "export")


class Command(JsonCommand):
    help = "Export a table for a spreadsheet, without the values of secrets."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("table", choices=list(EXPORTS), help="the table")
        parser.add_argument("--workspace", help="only rows of this workspace (default: all)")
        parser.add_argument(
            "--format", choices=list(FORMATS), help="file format (default: by the output's suffix, or csv)"
        )
        parser.add_argument("--output", help="the file to write (default: standard output)")

    def run(
        self, *, table: str, workspace: str | None, format: str | None, output: str | None, **options: Any  # noqa: A002
    ) -> dict[str, Any]:  # fmt: skip
        suffix = Path(output or "").suffix.removeprefix(".")
        kind = format or (suffix if suffix in FORMATS else "csv")
        if not output and (kind == "xlsx" or options["json"]):
            raise Invalid("Specify a file with --output.", code="no_output")
        rows = EXPORTS[table].model._default_manager.all()
        if workspace:
            rows = rows.filter(workspace=find_workspace(workspace))
        made = export_table(table, rows, by=By(COMMAND, timezone.now()))
        raw = FORMATS[kind].write(made)
        if not output:
            return {"text": raw.decode()}
        Path(output).write_bytes(raw)
        return {"table": table, "rows": len(made), "file": output}

    def show(self, result: dict[str, Any]) -> None:
        if "text" in result:
            self.stdout.write(result["text"], ending="")
        else:
            self.line(f"{result['rows']:,} rows: {result['file']}")
