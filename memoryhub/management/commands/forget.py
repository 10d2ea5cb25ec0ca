from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from knowledge_app.models import Forgotten
from memoryhub.as_json import forgotten_document
from memoryhub.backups.kept_databases import kept_databases
from memoryhub.find_by_name import find_session, find_workspace
from memoryhub.forgetting.erasure import ErasureRequest, lift, plan_forget, receipts
from memoryhub.forgetting.forget import forget
from memoryhub.lib.errors import NotFound
from memoryhub.management.json_command import JsonCommand
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "forget")
KINDS = ("phrase", "person", "source", "session")


class Command(JsonCommand):
    help = "Permanently erase a phrase, a person, a source or a session. Only shows a preview without --apply."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=(*KINDS, "list", "lift"), help="what to do")
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument(
            "words",
            nargs="*",
            help="the phrase, the person's names, the source or the session's key; for lift: a receipt's number",
        )
        parser.add_argument("--apply", action="store_true", help="erase it; this can't be undone")
        parser.add_argument("--reason", default="", help="stored with the receipt")

    def run(self, *, action: str, workspace: str, words: list[str], **options: Any) -> dict[str, Any]:
        found = find_workspace(workspace)
        if action == "list":
            return {"forgotten": [forgotten_document(receipt) for receipt in receipts(found)]}
        if action == "lift":
            return _lift(found, words)
        erasure = _erasure_request(found, action, words)
        preview = plan_forget(found, erasure)
        document: dict[str, Any] = {
            "rows": dict(preview.counts),
            "total": preview.total,
            "left": preview.left,
            "kept": kept_databases(),
            "receipt": None,
        }
        if options["apply"]:
            receipt, is_clean = forget(
                found, erasure, expected=preview.total, reason=options["reason"], by=By(COMMAND, timezone.now())
            )
            document |= {"receipt": forgotten_document(receipt), "vacuumed": is_clean}
        return document

    def show(self, result: dict[str, Any]) -> None:
        for receipt in result.get("forgotten", []):
            self.line(f"{receipt['id']}. {receipt['kind']}, {receipt['forgotten_at']}: {receipt['total']:,} rows")
        for name, count in result.get("rows", {}).items():
            self.line(f"{count:,} {name}")
        for name in result.get("left", []):
            self.line(f"The workspace's {name} contains it too. Change that yourself.")
        for name in result.get("kept", []):
            self.line(f"A restore kept {name}, which may still contain it. Delete it when you no longer need it.")
        if result.get("receipt"):
            self.line(f"Erased. The receipt's number is {result['receipt']['id']}.")
        elif "total" in result:
            self.line("Nothing was changed. --apply erases it permanently." if result["total"] else "No matches.")


def _erasure_request(workspace: Workspace, kind: str, words: list[str]) -> ErasureRequest:
    if kind == "session":
        return ErasureRequest(kind, session=find_session(workspace, words[0] if words else ""), everywhere=True)
    return ErasureRequest(kind, (" ".join(words),) if kind == "phrase" else tuple(words), everywhere=True)


def _lift(workspace: Workspace, words: list[str]) -> dict[str, Any]:
    number = int(words[0]) if words and words[0].isdigit() else 0
    receipt = Forgotten.objects.select_related("workspace").filter(workspace=workspace, pk=number).first()
    if receipt is None:
        raise NotFound(f"{workspace.slug} has no receipt {words[0] if words else ''}.")
    lift(receipt, by=By(COMMAND, timezone.now()))
    receipt.refresh_from_db()
    return {"forgotten": [forgotten_document(receipt)]}
