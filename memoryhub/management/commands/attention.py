from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from memoryhub.find_by_name import find_workspace
from memoryhub.inbox.attention import attention_items
from memoryhub.inbox.attention_items import attention_item_json
from memoryhub.management.json_command import JsonCommand
from memoryhub.role_scope import whole_scope

MARKS = {"problem": "!", "warning": "?", "info": " "}


class Command(JsonCommand):
    help = "List what needs attention in all workspaces or in one, most urgent first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", nargs="?", help="slug or name of the workspace (default: all)")

    def run(self, *, workspace: str | None, **_options: Any) -> dict[str, Any]:
        scope = whole_scope()
        if workspace:
            scope = scope.within(find_workspace(workspace))
        return {"needs": [attention_item_json(need) for need in attention_items(scope, now=timezone.now())]}

    def show(self, result: dict[str, Any]) -> None:
        for need in result["needs"]:
            since = f"{need['since']:%Y-%m-%d %H:%M}" if need["since"] else ""
            self.line(f"{MARKS[need['severity']]} {since:<16}  {need['workspace'] or '-'}: {need['text']}")
            self.line(f"{'':<20}{need['url']}")
        if not result["needs"]:
            self.line("Nothing needs attention.")
