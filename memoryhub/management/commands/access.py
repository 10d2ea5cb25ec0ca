from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from memoryhub.audit.access_log import access_document, accesses_in, find_target, first_rows, touch_document
from memoryhub.find_by_name import find_workspace
from memoryhub.management.json_command import JsonCommand

LIMIT = 50
MOST_ROWS = 1_000  # of an access


class Command(JsonCommand):
    help = "Show who read what in a workspace, or who has seen or changed a row."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="slug or name of the workspace")
        one = parser.add_mutually_exclusive_group()
        one.add_argument("--entry", type=int, metavar="PK", help="show who has seen this entry")
        one.add_argument("--fact", type=int, metavar="PK", help="show who has seen this fact")
        one.add_argument("--row", default="", metavar="TABLE:PK", help="show who has seen this row")
        parser.add_argument("--limit", type=int, default=LIMIT, help="number of reads to show, latest first")

    def run(
        self, *, workspace: str, entry: int | None, fact: int | None, row: str, limit: int, **_options: Any
    ) -> dict[str, Any]:
        found = find_workspace(workspace)
        review_requested = entry is not None or fact is not None or bool(row)
        target = find_target(found, entry=entry, fact=fact, row=row) if review_requested else None
        log = target.accesses if target else accesses_in(found)
        records = list(log.order_by("-id")[: max(limit, 0)])
        rows = first_rows(records, most=MOST_ROWS)
        document: dict[str, Any] = {"accesses": [access_document(record, rows[record.pk]) for record in records]}
        if target:
            document |= {"of": target.label, "touches": [touch_document(touch) for touch in target.touches]}
        return document

    def show(self, result: dict[str, Any]) -> None:
        for access in result["accesses"]:
            who = access["who"]["name"]
            self.line(f"{access['at']:%Y-%m-%d %H:%M} {who} {access['text']} ({access['via']})")
        for touch in result.get("touches", []):
            self.line(f"{touch['at']:%Y-%m-%d %H:%M} {touch['who']}: {touch['text']}")
        if not result["accesses"] and not result.get("touches"):
            self.line("No reads of this row." if "of" in result else "No reads.")
