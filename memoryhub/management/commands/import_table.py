from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import timezone

from memoryhub.lib.errors import NotFound
from memoryhub.lib.tables import check_size
from memoryhub.lib.tables.files import FORMATS
from memoryhub.management.json_command import JsonCommand
from memoryhub.spreadsheets.importing import import_rows
from memoryhub.spreadsheets.rows import IMPORTS, OUTCOMES
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "import")
OVERWRITE = "also change rows that have changed in the hub since the export"


class Command(JsonCommand):
    help = "Import an edited table that was written by export: all of its rows, or none if one is invalid."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("table", choices=list(IMPORTS), help="the table")
        parser.add_argument("file", help="the file to import")
        parser.add_argument("--format", choices=list(FORMATS), help="file format (default: by the file's suffix)")
        parser.add_argument("--overwrite", action="store_true", help=OVERWRITE)
        parser.add_argument("--dry-run", action="store_true", help="only show what would change")

    def run(
        self,
        *,
        table: str,
        file: str,
        format: str | None,  # noqa: A002
        overwrite: bool,
        dry_run: bool,
        **_options: Any,
    ) -> dict[str, Any]:
        result = import_table(table, file, file_format=format, overwrite=overwrite, dry_run=dry_run)
        self.exit_status = 1 if result["wrong"] else 0
        return result

    def show(self, result: dict[str, Any]) -> None:
        for line in result_lines(result):
            self.line(line)


def import_table(table: str, file: str, *, file_format: str | None, overwrite: bool, dry_run: bool) -> dict[str, Any]:
    """Import the rows of a file, and return the command's document."""
    path = Path(file)
    kind = file_format or path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise NotFound(f"Specify the format of {path.name} with --format: {', '.join(FORMATS)}.", code="no_such_file")
    try:
        check_size(path.stat().st_size)
        raw = path.read_bytes()
    except OSError as error:
        raise NotFound(f"{path} can't be read: {error.strerror}.", code="no_such_file") from error
    checked = import_rows(
        table,
        FORMATS[kind].read(raw),
        source=path.name,
        zone=ZoneInfo(settings.TIME_ZONE),
        by=By(COMMAND, timezone.now()),
        dry_run=dry_run,
        overwrite=overwrite,
    )
    return {
        "table": table,
        "dry_run": dry_run,
        **{outcome: checked.counts[outcome] for outcome in OUTCOMES},
        "wrong": [{"row": row.number, "errors": row.errors} for row in checked.rows if row.errors],
        "notes": [{"row": row.number, "notes": row.notes} for row in checked.rows if row.notes],
    }


def result_lines(result: dict[str, Any]) -> Iterator[str]:
    for row in result["notes"]:
        yield f"row {row['row']}: {'; '.join(row['notes'])}"
    for row in result["wrong"]:
        yield f"row {row['row']} is invalid: {'; '.join(row['errors'])}"
    if result["wrong"]:
        yield "Nothing was imported."
        return
    counts = ", ".join(f"{result[word]:,} {word}" for word in OUTCOMES)
    yield f"{'Would import' if result['dry_run'] else 'Imported'}: {counts}"
