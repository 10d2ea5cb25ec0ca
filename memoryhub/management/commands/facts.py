from __future__ import annotations

from argparse import ArgumentParser
from datetime import date
from typing import Any

from django.utils import timezone

from knowledge_app.models import Fact, MemoryDocument
from knowledge_app.services.documents.editing import find_or_start_document
from knowledge_app.services.documents.fact_edits import Revised, recategorise_facts, undo_revision, withdraw_facts
from knowledge_app.services.documents.proposals import append_fact
from memoryhub.find_by_name import find_document, find_workspace
from memoryhub.management.json_command import JsonCommand
from memoryhub.management.row_edits import edit_now, show_outcome
from memoryhub.origins.explanation import explain, explanation_json, find_fact
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "facts")
MAX_CHARS = 200  # of an origin's text
EDITS = ("pin", "unpin", "verify", "review")
ACTIONS = ("list", "why", "add", *EDITS, "recategorise", "withdraw", "undo")


class Command(JsonCommand):
    help = "List, explain, add, pin, verify, categorise or withdraw facts of a document, or set their review date."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=ACTIONS, help="what to do")
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("ids", nargs="*", type=int, help="ids of facts (see list); for undo: a revision")
        parser.add_argument("--document", default="MEMORY.md")
        parser.add_argument("--category", default="", help="for recategorise (default: none)")
        parser.add_argument("--by", type=date.fromisoformat, help="for review: the date, YYYY-MM-DD")
        parser.add_argument("--reason", default="", help="for withdraw")
        parser.add_argument("--text", default="", help="for add: the fact")

    def run(self, *, action: str, workspace: str, ids: list[int], **options: Any) -> dict[str, Any]:
        if action == "add":
            return _add(find_or_start_document(find_workspace(workspace), options["document"]), options["text"])
        document = find_document(find_workspace(workspace), options["document"])
        if action == "list":
            living = Fact.objects.filter(document=document, died=None).order_by("line", "id")
            return {"facts": [_fact(fact) for fact in living]}
        if action == "why":
            return {"facts": [explanation_json(explain(find_fact(document.workspace, pk))) for pk in ids]}
        if action in EDITS:
            values = {"review_by": options["by"].isoformat() if options["by"] else ""} if action == "review" else {}
            own = list(Fact.objects.filter(document=document, died=None, pk__in=ids).values_list("pk", flat=True))
            return {"run": edit_now(COMMAND, document.workspace, "facts", action, own, values)}
        if action == "undo":
            revision = undo_revision(document, ids[0] if ids else 0, by=By(COMMAND, timezone.now())).revision
            return {"revision": revision.number if revision else None}
        return _revised(_revise(document, action, ids, options))

    def show(self, result: dict[str, Any]) -> None:
        for fact in result.get("facts", []):
            if "origins" in fact:
                self._show_why(fact)
                continue
            self.line(f"{fact['id']}. line {fact['line']}{' (pinned)' * fact['pinned']}: {fact['text']}")
        show_outcome(self, result)
        if "revision" in result:
            self.line(f"revision {result['revision'] or 'unchanged'}")
        if result.get("held"):
            self.line(f"held for review: {result['held']}")

    def _show_why(self, why: dict[str, Any]) -> None:
        fact = why["fact"]
        self.line(f"{fact['id']}. {fact['text']}")
        self.line(f"  {why['certainty']}: {why['kind'].replace('_', ' ')}")
        for origin in why["origins"]:
            message, history = origin["message"], origin["history"]
            place = f" {message['session']} #{message['position']}" if message else ""
            score = f" ({origin['score']:.0%})" if origin["score"] is not None else ""
            text = " ".join((message or history or {"content": ""})["content"].split())
            self.line(f"  {origin['kind'].replace('_', ' ')}{place}{score}: {text[:MAX_CHARS]}")
        for step in why["revisions"]:
            self.line(f"  revision {step['revision']}: {step['action']} by {step['author']}")


def _add(document: MemoryDocument, text: str) -> dict[str, Any]:
    written = append_fact(document, text, by=By(COMMAND, timezone.now()))
    number = written.revision.number if written.revision else None
    return {"revision": number, "held": written.held.pk if written.held else None}


def _revise(document: MemoryDocument, action: str, ids: list[int], options: dict[str, Any]) -> Revised:
    now = timezone.now()
    if action == "recategorise":
        return recategorise_facts(document, ids, options["category"], by=By(COMMAND, now))
    return withdraw_facts(document, ids, by=By(COMMAND, now), reason=options["reason"])


def _revised(revised: Revised) -> dict[str, Any]:
    return {"changed": revised.count, "revision": revised.revision.number if revised.revision else None}


def _fact(fact: Fact) -> dict[str, Any]:
    return {
        "id": fact.pk,
        "line": fact.line,
        "section": fact.section,
        "category": fact.category or None,
        "text": fact.text,
        "pinned": fact.pinned,
        "last_verified_at": fact.last_verified_at,
        "review_by": fact.review_by,
    }
