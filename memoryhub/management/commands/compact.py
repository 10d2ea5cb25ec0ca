from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from knowledge_app.services.documents.compaction import apply_compaction, plan_compaction
from memoryhub.find_by_name import find_document, find_workspace
from memoryhub.lib.errors import Invalid
from memoryhub.lib.text.compaction import without_lines
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD
from memoryhub.management.json_command import JsonCommand
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "compact")


class Command(JsonCommand):
    help = "Find duplicate and contradictory lines of MEMORY.md. Changes nothing without --apply."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument(
            "--threshold", type=float, default=DEFAULT_THRESHOLD, help="minimum similarity of duplicates"
        )
        parser.add_argument("--apply", action="store_true", help="remove all but one line of each group")

    def run(self, *, workspace: str, threshold: float, apply: bool, **_options: Any) -> dict[str, Any]:
        if not 0 < threshold <= 1:
            raise Invalid("The threshold must be greater than 0 and at most 1.", code="bad_threshold")
        document = find_document(find_workspace(workspace), "MEMORY.md")
        found = plan_compaction(document, threshold=threshold)
        before = document.head.content if document.head else ""
        if apply:
            apply_compaction(document, found.removable, by=By(COMMAND, timezone.now()))
        return {
            "applied": apply,
            "clusters": [
                {
                    "keep": cluster.keep.text,
                    "remove": [line.text for line in cluster.remove],
                    "similarity": round(cluster.similarity, 3),
                }
                for cluster in found.clusters
            ],
            "contradictions": [
                {"one": pair.one.text, "other": pair.other.text, "similarity": round(pair.similarity, 3)}
                for pair in found.contradictions
            ],
            "removed": len(found.removable),
            "content": without_lines(before, found.removable),
        }

    def show(self, result: dict[str, Any]) -> None:
        for cluster in result["clusters"]:
            self.line(f"keep    {cluster['keep']}")
            for text in cluster["remove"]:
                self.line(f"  {'removed' if result['applied'] else 'remove'}  {text}  ({cluster['similarity']})")
        for pair in result["contradictions"]:
            self.line(f"differ  {pair['one']}\n        {pair['other']}")
        self.line(
            f"{result['removed']} duplicate lines" + (" removed" if result["applied"] else "; --apply removes them")
        )
