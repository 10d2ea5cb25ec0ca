from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.db import connection

from memoryhub.lib.search.operations import indexes
from memoryhub.lib.search.upkeep import faults, rebuild
from memoryhub.management.json_command import JsonCommand


class Command(JsonCommand):
    help = "Make the search indexes anew from the rows. The database keeps them itself; this mends a damaged one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--check", action="store_true", help="only tell which disagree with their rows")

    def run(self, *, check: bool, **_options: Any) -> dict[str, Any]:
        found = []
        for index in indexes(connection):
            wrong = faults(connection, index)
            if not check:
                rebuild(connection, index)
            found.append({"table": index.table, "faults": wrong, "rebuilt": not check})
        self.exit_status = int(check and any(one["faults"] for one in found))
        return {"indexes": found}

    def show(self, result: dict[str, Any]) -> None:
        for one in result["indexes"]:
            self.line(
                f"{one['table']}: {'; '.join(one['faults']) or 'in order'}{', rebuilt' if one['rebuilt'] else ''}"
            )
