from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memoryhub.lib.tables.files import FORMATS
from memoryhub.management.commands import import_workspace
from memoryhub.management.commands.import_table import OVERWRITE, import_table, result_lines
from memoryhub.management.json_command import JsonParser
from memoryhub.spreadsheets.rows import IMPORTS


class _Parser(JsonParser):
    def parse_args(self, args: Sequence[str] | None = None, namespace: Namespace | None = None) -> Namespace:  # type: ignore[override]
        """Tell a folder or archive from a table and its file, which may have options between them."""
        options = self.parse_intermixed_args(args, namespace)
        if options.file is None:
            if options.path in IMPORTS and not Path(options.path).exists():
                self.error(f"a file is missing: use import_table {options.path} FILE")
            for name in ("format", "overwrite"):
                if getattr(options, name):
                    self.error(f"--{name} is for tables: use import_table TABLE FILE")
        elif options.path not in IMPORTS:
            self.error(f"give one folder, file or archive, or one of the tables {', '.join(IMPORTS)} and a file")
        elif options.name or options.layout != "auto":
            self.error("--name and --layout are for folders and archives, not for tables")
        return options


class Command(import_workspace.Command):
    help = (
        "Import an agent's folder, an AgTerm export or an archive. Can be repeated; never deletes anything. "
        "For a table, use import_table."
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.__class__ = _Parser
        return parser

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", nargs="?", help="a file for the table in PATH, as with import_table")
        parser.add_argument("--format", choices=list(FORMATS), help="format of that file")
        parser.add_argument("--overwrite", action="store_true", help=f"for a table: {OVERWRITE}")

    def run(  # type: ignore[override]
        self,
        *,
        path: str,
        file: str | None,
        format: str | None,  # noqa: A002
        overwrite: bool,
        **options: Any,
    ) -> dict[str, Any]:
        if file is None:
            return super().run(path=path, **options)
        self.stopped = "Stopped."
        result = import_table(path, file, file_format=format, overwrite=overwrite, dry_run=options["dry_run"])
        self.exit_status = 1 if result["wrong"] else 0
        return result

    def show(self, result: dict[str, Any]) -> None:
        if "table" not in result:
            super().show(result)
            return
        for line in result_lines(result):
            self.line(line)
