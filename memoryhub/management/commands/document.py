from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from knowledge_app.services.documents.origins import LineOrigin, line_origins
from memoryhub.find_by_name import find_document, find_workspace
from memoryhub.lib.errors import NotFound
from memoryhub.management.json_command import JsonCommand


class Command(JsonCommand):
    help = "Print a memory document or one of its revisions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("name", nargs="?", default="MEMORY.md", help="name of the document")
        parser.add_argument("--revision", type=int, help="number of a revision (default: the latest)")
        parser.add_argument(
            "--blame", action="store_true", help="show where each line of the latest revision came from"
        )

    def run(self, *, workspace: str, name: str, revision: int | None, blame: bool, **_options: Any) -> dict[str, Any]:
        document = find_document(find_workspace(workspace), name)
        shown = document.head if revision is None else document.revisions.filter(number=revision).first()
        if shown is None:
            raise NotFound(f"{name} has no revision {revision}.")
        lines = {"lines": [_origin(line) for line in line_origins(document)]} if blame else {}
        return lines | {
            "name": document.name,
            "revision": shown.number,
            "content": shown.content,
            "revisions": [
                {
                    "number": row.number,
                    "author": row.author_name,
                    "reason": row.reason,
                    "created_at": row.created_at.isoformat(),
                    "hash": row.content_hash,
                }
                for row in document.revisions.order_by("number")
            ],
        }

    def show(self, result: dict[str, Any]) -> None:
        for line in result.get("lines", []):
            source = " ".join(
                [line["source"], *(f"{entry['session']}#{entry['position']}" for entry in line["entries"])]
            )
            self.line(f"{line['revision']:>4} {source:<24} {line['text']}")
        if "lines" not in result:
            self.line(result["content"])


def _origin(line: LineOrigin) -> dict[str, Any]:
    return {
        "line": line.number,
        "text": line.text,
        "revision": line.revision.number,
        "author": line.revision.author_name,
        "source": line.source,
        "run": line.revision.run_id,
        "entries": [{"session": entry.session.key, "position": entry.position} for entry in line.entries],
    }
