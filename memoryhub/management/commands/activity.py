from __future__ import annotations

from argparse import ArgumentParser
from datetime import date
from pathlib import Path
from typing import Any

from django.utils import timezone

from memoryhub.as_json import activity_document
from memoryhub.audit.audit_log import Wanted, fitting, lines_of, record_export
from memoryhub.audit.changes import KINDS_OF
from memoryhub.lookup import find_session, find_workspace
from memoryhub.management.json_command import JsonCommand
from sessions_app.models import AuditRecord
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "activity")


class Command(JsonCommand):
    help = "What happened in a workspace, or in the whole hub: the audit log, latest first, or as a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("workspace", nargs="?", help="without one: the whole hub")
        parser.add_argument("--session", help="only what concerns the session of this key")
        parser.add_argument("--after", type=int, default=0, help="only what is newer than this number")
        parser.add_argument(
            "--kind", choices=("changes", "runs"), default="", help="changes: all but runs and appends"
        )
        parser.add_argument("--who", default="", help="a part of the name of who did it")
        parser.add_argument(
            "--actor", choices=AuditRecord.ActorKind.values, default="", help="what kind of actor did it"
        )
        parser.add_argument("--of", choices=list(KINDS_OF), default="", help="what it concerns", dest="noun")
        parser.add_argument("--text", default="", help="a part of what it says")
        parser.add_argument("--since", type=date.fromisoformat, metavar="DAY", help="from this day on (2026-03-01)")
        parser.add_argument("--until", type=date.fromisoformat, metavar="DAY", help="up to the end of this day")
        parser.add_argument("--limit", type=int, default=50, help="records shown")
        parser.add_argument(
            "--output", type=Path, metavar="FILE", help="write all that fits into a file, oldest first"
        )
        parser.add_argument("--format", choices=("csv", "jsonl"), default="csv", help="of that file")

    def run(
        self,
        *,
        workspace: str | None,
        session: str | None,
        after: int,
        limit: int,
        output: Path | None,
        **options: Any,
    ) -> dict[str, Any]:
        found = find_workspace(workspace) if workspace else None
        told = AuditRecord.objects.filter(workspace=found) if found else AuditRecord.objects.all()
        told = fitting(told.filter(id__gt=after), Wanted(**{name: options[name] for name in Wanted.__annotations__}))
        if session and found:
            told = told.filter(session=find_session(found, session))
        if output is None:
            return {"activity": [activity_document(row) for row in told.order_by("-id")[: max(1, limit)]]}
        with output.open("x", encoding="utf-8", newline="") as file:
            count = sum(file.write(line) and 1 for line in lines_of(told, options["format"]))
        count -= options["format"] == "csv"
        record_export(count, found, by=By(COMMAND, timezone.now()))
        return {"file": str(output), "records": count}

    def show(self, result: dict[str, Any]) -> None:
        if "file" in result:
            self.line(f"{result['records']:,} records are in {result['file']}.")
        for row in result.get("activity", []):
            self.line(f"{row['at']:%Y-%m-%d %H:%M:%S}  {row['event']:<22} {row['text']} ({row['actor']['name']})")
