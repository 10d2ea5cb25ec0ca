from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from memoryhub.management.json_command import JsonCommand
from memoryhub.management.progress_bar import drawn
from memoryhub.search.rebuild import rebuild_indexes


class Command(JsonCommand):
    help = "Make the search indexes anew from the rows. The database keeps them itself; this mends a damaged one."
    stopped = "Stopped. Each index is either as it was or made anew: run rebuild_search again for the rest."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--check", action="store_true", help="only tell which disagree with their rows")

    def run(self, *, check: bool, **_options: Any) -> dict[str, Any]:
        found = rebuild_indexes(only_check=check, step=drawn("rows"))
        self.exit_status = int(check and any(one["faults"] for one in found))
        return {"indexes": found}

    def show(self, result: dict[str, Any]) -> None:
        for one in result["indexes"]:
            self.line(
                f"{one['table']}: {'; '.join(one['faults']) or 'in order'}{', rebuilt' if one['rebuilt'] else ''}"
            )
