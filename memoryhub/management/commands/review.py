from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils import timezone

from knowledge_app.models import HeldChange
from knowledge_app.services.documents.held_changes import hunks_of
from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import NotFound
from memoryhub.lib.text.diff import diff_texts
from memoryhub.management.json_command import JsonCommand
from memoryhub.runs.review import approve, reject
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "review")


class Command(JsonCommand):
    help = "List and show held changes, and approve (completely, in parts, or edited) or reject them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "action", nargs="?", choices=("list", "show", "approve", "reject"), default="list", help="what to do"
        )
        parser.add_argument("number", nargs="?", type=int, help="number of the held change")
        parser.add_argument("--workspace", help="for list: only this workspace")
        parser.add_argument("--all", action="store_true", help="for list: include decided changes")
        parser.add_argument("--part", type=int, action="append", help="for approve: only this part; repeatable")
        parser.add_argument("--file", help="for approve: save the text of this file instead")
        parser.add_argument("--reason", default="", help="why it is approved or rejected")

    def run(self, *, action: str, number: int | None, **options: Any) -> dict[str, Any]:
        changes = HeldChange.objects.select_related("document", "workspace", "run", "ours", "base").order_by("-id")
        if action == "list":
            if options["workspace"]:
                changes = changes.filter(workspace=find_workspace(options["workspace"]))
            if not options["all"]:
                changes = changes.filter(status=HeldChange.Status.PENDING)
            return {"changes": [_document(change) for change in changes[:100]]}
        change = changes.filter(pk=number or 0).first()
        if change is None:
            raise NotFound(f"There is no held change {number}. See `review list`.")
        if action == "approve":
            text = Path(options["file"]).read_text(encoding="utf-8-sig") if options["file"] else None
            approve(
                change, by=By(COMMAND, timezone.now()), hunks=options["part"], text=text, reason=options["reason"]
            )
        elif action == "reject":
            reject(change, by=By(COMMAND, timezone.now()), reason=options["reason"])
        change.refresh_from_db()
        return {"changes": [_document(change) | _texts(change)]}

    def show(self, result: dict[str, Any]) -> None:
        if not result["changes"]:
            self.line("No held changes.")
        for change in result["changes"]:
            place = f"{change['workspace']}/{change['document']}"
            self.line(f"{change['id']:>6}  {change['status']:<10} {place}: {change['reason']}")
            for line in change.get("diff", []):
                self.line(f"        {line}")


def _document(change: HeldChange) -> dict[str, Any]:
    return {
        "id": change.pk,
        "workspace": change.workspace.slug,
        "document": change.document.name,
        "status": change.status,
        "flags": change.flags,
        "reason": change.reason,
        "run": change.run_id,
        "author": change.author_name,
        "created_at": change.created_at,
        "decided_at": change.decided_at,
        "decision_reason": change.decision_reason,
    }


def _texts(change: HeldChange) -> dict[str, Any]:
    ours = change.ours.content if change.ours else ""
    return {
        "base": change.base.content if change.base else None,
        "ours": ours,
        "proposed": change.proposed,
        "parts": [{"part": hunk.number, "old": hunk.old, "new": hunk.new} for hunk in hunks_of(change)],
        "diff": diff_texts(ours, change.proposed),
    }
