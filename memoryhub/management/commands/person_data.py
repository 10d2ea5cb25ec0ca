from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils import timezone

from knowledge_app.models import Forgotten
from memoryhub.as_json import forgotten_document
from memoryhub.backups.kept_databases import kept_databases
from memoryhub.forgetting.erasure import lift
from memoryhub.forgetting.hub_erasure import Person, erase_person, hub_receipts, write_receipt
from memoryhub.forgetting.person_export import export_person
from memoryhub.forgetting.person_search import PersonPlan, plan_person
from memoryhub.lib.errors import NotFound
from memoryhub.management.json_command import JsonCommand, output_document
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "person_data")
ACTIONS = ("find", "export", "erase", "list", "lift")


class Command(JsonCommand):
    help = "Find, export or erase the data about a person in all workspaces. Erases nothing without --apply."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=ACTIONS, help="what to do; list and lift are about receipts")
        parser.add_argument(
            "names", nargs="*", help="names, e-mail addresses, phone numbers and ids; for lift: a receipt's number"
        )
        parser.add_argument(
            "--session",
            action="append",
            default=[],
            metavar="KEY",
            help="a session of the person, to export or erase with all messages; can be repeated",
        )
        parser.add_argument("--output", metavar="FILE", help="for export: write to this file")
        parser.add_argument("--apply", action="store_true", help="for erase: erase it; this can't be undone")
        parser.add_argument("--reason", default="", help="stored with the receipt")

    def run(self, *, action: str, names: list[str], **options: Any) -> dict[str, Any]:
        by = By(COMMAND, timezone.now())
        if action == "list":
            return {"receipts": [forgotten_document(receipt) for receipt in hub_receipts()]}
        if action == "lift":
            return _lift(names, by)
        person = Person(tuple(names), tuple(options["session"]))
        if action == "export":
            parts = export_person(person, by=by)
            return output_document("".join(parts), options["output"] and str(Path(options["output"])))
        plan = plan_person(person)
        document = _document(plan)
        if action == "erase" and options["apply"]:
            receipt = write_receipt(person, expected=plan.total, reason=options["reason"], by=by)
            is_clean = erase_person(receipt, by=by)
            document |= {"receipt": forgotten_document(receipt), "vacuumed": is_clean}
        return document

    def show(self, result: dict[str, Any]) -> None:
        if "text" in result:
            self.stdout.write(result["text"])
        if "file" in result:
            self.line(f"Exported to {result['file']}")
        for receipt in result.get("receipts", []):
            places = ", ".join(str(place["workspace"] or "outside of workspaces") for place in receipt["workspaces"])
            self.line(f"{receipt['id']}. {receipt['forgotten_at']}: {receipt['total']:,} rows ({places})")
        if "workspaces" in result:
            self._show_plan(result)

    def _show_plan(self, result: dict[str, Any]) -> None:
        for place in result["workspaces"]:
            counts = ", ".join(f"{count:,} {name}" for name, count in place["rows"].items())
            self.line(f"{place['workspace'] or 'outside of workspaces'}: {counts or 'no rows'}")
            for name in place["left"]:
                self.line(f"  The workspace's {name} contains it too. Change that yourself.")
        for account in result["accounts"]:
            self.line(f"The account {account} isn't erased.")
        for alias in result["aliases"]:
            self.line(f"Other name? {alias['text']} ({alias['kind']}, {alias['rows']:,} rows)")
        for session in result["sessions"]:
            self.line(f"Their session? --session {session['key']} ({session['entries']:,} entries)")
        for name in result["kept"]:
            self.line(f"A restore kept {name}, which may still contain it. Delete it when you no longer need it.")
        if result["receipt"]:
            self.line(f"Erased. The receipt's number is {result['receipt']['id']}.")
        else:
            self.line("Nothing was changed. erase --apply erases it." if result["total"] else "No matches.")


def _document(plan: PersonPlan) -> dict[str, Any]:
    return {
        "workspaces": [
            {
                "workspace": place.workspace.slug if place.workspace else None,
                "rows": dict(sorted(place.preview.counts.items())),
                "left": place.preview.left,
            }
            for place in plan.places
        ],
        "total": plan.total,
        "aliases": [
            {"kind": one.kind, "text": one.text, "rows": one.rows, "workspaces": sorted(one.workspaces)}
            for one in plan.aliases
        ],
        "sessions": [
            {"key": one.key, "reason": one.reason, "entries": one.entries, "workspaces": sorted(one.workspaces)}
            for one in plan.sessions
        ],
        "accounts": [user.username for user in plan.accounts],
        "kept": kept_databases(),
        "receipt": None,
    }


def _lift(names: list[str], by: By) -> dict[str, Any]:
    number = int(names[0]) if names and names[0].isdigit() else 0
    receipt = Forgotten.objects.filter(workspace=None, pk=number).first()
    if receipt is None:
        raise NotFound(f"There is no receipt {names[0] if names else ''} of the whole hub.")
    lift(receipt, by=by)
    receipt.refresh_from_db()
    return {"receipts": [forgotten_document(receipt)]}
