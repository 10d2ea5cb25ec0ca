from __future__ import annotations

from argparse import ArgumentParser
from datetime import date
from pathlib import Path
from typing import Any

from django.utils import timezone

from memoryhub.as_json import activity_document
from memoryhub.audit.audit_log import AuditFilter, export_lines, filter_records, record_export
from memoryhub.audit.changes import KINDS_OF
from memoryhub.find_by_name import find_session, find_workspace
from memoryhub.management.json_command import JsonCommand
from sessions_app.models import AuditRecord
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "activity")


class Command(JsonCommand):
    help = "Show the audit log of a workspace or of the whole hub, or write it to a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", nargs="?", help="slug or name of the workspace (default: the whole hub)")
        parser.add_argument("--session", help="only records of the session with this key")
        parser.add_argument("--after", type=int, default=0, help="only records after this number")
        parser.add_argument(
            "--kind", choices=("changes", "runs"), default="", help="changes: everything except runs and appends"
        )
        parser.add_argument("--who", default="", help="only actors whose name contains this")
        parser.add_argument(
            "--actor", choices=AuditRecord.ActorKind.values, default="", help="only this kind of actor"
        )
        parser.add_argument("--of", choices=list(KINDS_OF), default="", help="only records about this", dest="noun")
        parser.add_argument("--text", default="", help="only records whose text contains this")
        parser.add_argument(
            "--since", type=date.fromisoformat, metavar="DAY", help="only records since this day (YYYY-MM-DD)"
        )
        parser.add_argument(
            "--until", type=date.fromisoformat, metavar="DAY", help="only records up to and including this day"
        )
        parser.add_argument("--limit", type=int, default=50, help="number of records to show")
        parser.add_argument(
            "--output", type=Path, metavar="FILE", help="write all matching records to a new file, oldest first"
        )
        parser.add_argument("--format", choices=("csv", "jsonl"), default="csv", help="format of the file")

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
        records = AuditRecord.objects.filter(workspace=found) if found else AuditRecord.objects.all()
        records = filter_records(
            records.filter(id__gt=after), AuditFilter(**{name: options[name] for name in AuditFilter.__annotations__})
        )
        if session and found:
            records = records.filter(session=find_session(found, session))
        if output is None:
            return {"activity": [activity_document(row) for row in records.order_by("-id")[: max(1, limit)]]}
        with output.open("x", encoding="utf-8", newline="") as file:
            count = sum(file.write(line) and 1 for line in export_lines(records, options["format"]))
        count -= options["format"] == "csv"
        record_export(count, found, by=By(COMMAND, timezone.now()))
        return {"file": str(output), "records": count}

    def show(self, result: dict[str, Any]) -> None:
        if "file" in result:
            self.line(f"Wrote {result['records']:,} records to {result['file']}.")
        for row in result.get("activity", []):
            self.line(f"{row['at']:%Y-%m-%d %H:%M:%S}  {row['event']:<22} {row['text']} ({row['actor']['name']})")
