from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from memoryhub.management.json_command import JsonCommand
from memoryhub.management.progress_bar import progress_bar
from memoryhub.search.rebuild import rebuild_indexes


class Command(JsonCommand):
    help = "Rebuild the search indexes from their rows. Only needed if one is damaged."
    stopped = "Stopped. Each index is either unchanged or rebuilt. Run the command again for the rest."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="only report which indexes differ from their rows")

    def run(self, *, check: bool, **_options: Any) -> dict[str, Any]:
        found = rebuild_indexes(only_check=check, step=progress_bar("rows"))
        self.exit_status = int(check and any(one["faults"] for one in found))
        return {"indexes": found}

    def show(self, result: dict[str, Any]) -> None:
        for one in result["indexes"]:
            self.line(f"{one['table']}: {'; '.join(one['faults']) or 'ok'}{', rebuilt' if one['rebuilt'] else ''}")
