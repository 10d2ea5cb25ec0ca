from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from memoryhub.flows.documents import activity_document
from memoryhub.flows.lookup import find_session, find_workspace
from memoryhub.management.json_command import JsonCommand
from sessions_app.models import AuditRecord


class Command(JsonCommand):
    help = "What happened in a workspace, latest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("workspace")
        parser.add_argument("--session", help="only what concerns the session of this key")
        parser.add_argument("--after", type=int, default=0, help="only what is newer than this number")
        parser.add_argument("--limit", type=int, default=50)

    def run(self, *, workspace: str, session: str | None, after: int, limit: int, **_options: Any) -> dict[str, Any]:
        found = find_workspace(workspace)
        told = AuditRecord.objects.filter(workspace=found, id__gt=after)
        if session:
            told = told.filter(session=find_session(found, session))
        return {"activity": [activity_document(row) for row in told.order_by("-id")[: max(1, limit)]]}

    def show(self, result: dict[str, Any]) -> None:
        for row in result["activity"]:
            self.line(f"{row['at']:%Y-%m-%d %H:%M:%S}  {row['event']:<22} {row['text']} ({row['actor']['name']})")
