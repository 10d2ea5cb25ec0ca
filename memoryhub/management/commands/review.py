from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils import timezone

from knowledge_app.models import HeldChange, HeldRow, KeyValue
from knowledge_app.services.documents.held_changes import hunks_of
from knowledge_app.services.held_rows import LINKS
from knowledge_app.services.rows.held_row_decisions import approve_row, remove_row
from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import NotFound
from memoryhub.lib.text.diff import diff_texts
from memoryhub.management.json_command import JsonCommand
from memoryhub.runs.review import approve, approve_unflagged, flagged_text, reject
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "review")
ACTIONS = ("list", "show", "approve", "reject", "approve-row", "remove-row")
MASK = "••••"


class Command(JsonCommand):
    help = (
        "List and show held changes, and approve (completely, in parts, or edited) or reject them. "
        "Approve or remove flagged additions of agents."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", nargs="?", choices=ACTIONS, default="list", help="what to do")
        parser.add_argument("number", nargs="?", type=int, help="number of the held change or row")
        parser.add_argument("--workspace", help="for list: only this workspace")
        parser.add_argument("--all", action="store_true", help="for list: include decided changes")
        parser.add_argument(
            "--part",
            type=int,
            action="append",
            help="for approve: only this part; repeatable (default: all except flagged ones)",
        )
        parser.add_argument("--file", help="for approve: save the text of this file instead")
        parser.add_argument("--reason", default="", help="why it is approved or rejected")

    def run(self, *, action: str, number: int | None, **options: Any) -> dict[str, Any]:
        changes = HeldChange.objects.select_related("document", "workspace", "run", "ours", "base").order_by("-id")
        rows = HeldRow.objects.waiting().select_related("workspace", *LINKS.values()).order_by("-id")
        if action == "list":
            if options["workspace"]:
                found = find_workspace(options["workspace"])
                changes, rows = changes.filter(workspace=found), rows.filter(workspace=found)
            if not options["all"]:
                changes = changes.filter(status=HeldChange.Status.PENDING)
            return {"changes": [_document(one) for one in changes[:100]], "rows": [_row(one) for one in rows[:100]]}
        if action in ("approve-row", "remove-row"):
            return _decide_row(rows.filter(pk=number or 0).first(), action, number)
        change = changes.filter(pk=number or 0).first()
        if change is None:
            raise NotFound(f"There is no held change {number}. See `review list`.")
        flagged = 0
        if action == "approve":
            flagged = _approve(change, options)
        elif action == "reject":
            reject(change, by=By(COMMAND, timezone.now()), reason=options["reason"])
        change.refresh_from_db()
        return {"changes": [_document(change) | _texts(change)], "flagged_waiting": flagged}

    def show(self, result: dict[str, Any]) -> None:
        if not result["changes"] and not result.get("rows"):
            self.line("No held changes.")
        if result.get("flagged_waiting"):
            self.line(flagged_text(result["flagged_waiting"]))
        for row in result.get("rows", []):
            codes = ", ".join(sorted({finding["code"] for finding in row["findings"]}))
            self.line(f"row {row['id']}  {row['workspace']}: {row['kind']} {row['row']} ({codes}): {row['text']}")
        for change in result["changes"]:
            place = f"{change['workspace']}/{change['document']}"
            found = "; ".join(change["flags"])
            reason = " ".join(change["reason"].split())
            said = f' "{reason}"' if reason not in ("", found) else ""
            self.line(f"{change['id']:>6}  {change['status']:<10} {place}: {found}{said}")
            for line in change.get("diff", []):
                self.line(f"        {line}")


def _approve(change: HeldChange, options: dict[str, Any]) -> int:
    """Approve some parts, an edited text, or all unflagged parts; return how many flagged ones still wait."""
    by, reason = By(COMMAND, timezone.now()), options["reason"]
    if options["part"] is None and not options["file"]:
        return approve_unflagged(change, by=by, reason=reason)
    text = Path(options["file"]).read_text(encoding="utf-8-sig") if options["file"] else None
    approve(change, by=by, hunks=options["part"], text=text, reason=reason)
    return 0


def _row(held: HeldRow) -> dict[str, Any]:
    row = held.row
    text = f"{row.key} = {MASK if row.is_secret else row.value}" if isinstance(row, KeyValue) else row.content
    return {
        "id": held.pk,
        "workspace": held.workspace.slug,
        "kind": LINKS[type(row)],
        "row": row.pk,
        "text": text,
        "findings": held.findings,
        "author": held.author_name,
        "created_at": held.created_at,
    }


def _decide_row(held: HeldRow | None, action: str, number: int | None) -> dict[str, Any]:
    if held is None:
        raise NotFound(f"There is no held row {number}. See `review list`.")
    result = {"changes": [], "rows": [_row(held)]}
    decide = approve_row if action == "approve-row" else remove_row
    decide(held, by=By(COMMAND, timezone.now()))
    return result


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
