from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from knowledge_app.models import HistoryEntry
from knowledge_app.services.held_rows import held_fields
from memoryhub.find_by_name import find_workspace
from memoryhub.management.json_command import JsonCommand
from memoryhub.management.row_edits import edit_now, show_outcome
from sessions_app.services.audit import Actor

COMMAND = Actor("command", "history")


class Command(JsonCommand):
    help = "List, archive or unarchive history entries."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=("list", "archive", "unarchive"), help="what to do")
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("positions", nargs="*", type=int, help="positions of entries (see list)")
        parser.add_argument("--limit", type=int, default=50, help="for list: number of entries")

    def run(
        self, *, action: str, workspace: str, positions: list[int], limit: int, **_options: Any
    ) -> dict[str, Any]:
        found = find_workspace(workspace)
        rows = HistoryEntry.objects.filter(workspace=found).select_related("hold").order_by("-position")
        if action == "list":
            return {"entries": [_entry(row) for row in rows[: max(1, limit)]]}
        pks = list(rows.filter(position__in=positions).values_list("pk", flat=True))
        return {"run": edit_now(COMMAND, found, "history", action, pks)}

    def show(self, result: dict[str, Any]) -> None:
        for entry in result.get("entries", []):
            notes = " (archived)" * entry["archived"] + " (held for review)" * entry["held"]
            self.line(f"{entry['position']}.{notes} {entry['content']}")
        show_outcome(self, result)


def _entry(row: HistoryEntry) -> dict[str, Any]:
    return {
        "position": row.position,
        "at": row.occurred_at,
        "content": row.content,
        "archived": row.is_archived,
        "withdrawn_at": row.withdrawn_at,
        **held_fields(row),
    }
