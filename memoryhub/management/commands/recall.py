from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from memoryhub.find_by_name import find_workspace
from memoryhub.management.json_command import JsonCommand
from memoryhub.search import Scope
from memoryhub.search.recall import LIMIT, log_recall, recall


class Command(JsonCommand):
    help = "Find the observations and other memory of a workspace that answer a question."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("query", help="the question")
        parser.add_argument("--limit", type=int, default=LIMIT, help="maximum of each kind")
        parser.add_argument(
            "--explain", action="store_true", help="show scores and the words added by the semantic graph"
        )

    def run(self, *, workspace: str, query: str, limit: int, explain: bool, **_options: Any) -> dict[str, Any]:
        now = timezone.now()
        recalled = recall(Scope((find_workspace(workspace).pk,), for_agent=True), query, now=now, limit=limit)
        log_recall(recalled, now)
        document: dict[str, Any] = recalled.document
        if explain:
            document["words"] = recalled.words
            document["added"] = {
                word: [{"word": near, "weight": weight} for near, weight in found]
                for word, found in recalled.added.items()
            }
            document["scores"] = {
                f"{kind}s": [{"id": one.observation.pk, "score": one.score} for one in rows]
                for kind, rows in recalled.found.items()
            }
        return document

    def show(self, result: dict[str, Any]) -> None:
        for note in result["notes"]:
            self.line(note)
        for kind in ("findings", "insights", "lessons"):
            self.line(f"{kind.capitalize()}:")
            for text in result[kind] or ["none"]:
                self.line(f"  {text}")
        if result["memories"]:
            self.line("Memories:")
        for one in result["memories"]:
            self.line(f"  [{one['kind']}] {one['text']}")
