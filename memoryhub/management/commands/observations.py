from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from knowledge_app.models import Confirmation, Observation
from knowledge_app.services.rows.exporting import observations_file
from knowledge_app.services.rows.observations import CATEGORIES, NewObservation, decide, store
from memoryhub.as_json import observation_document
from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import Invalid, NotFound
from memoryhub.management.arguments import count
from memoryhub.management.json_command import JsonCommand, output_document
from memoryhub.management.row_edits import edit_now, given, show_outcome
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "observations")
EDITS = ("edit", "move", "verify", "withdraw", "return")
ACTIONS = ("list", "add", *EDITS, "offered", "confirm", "apart", "export")


class Command(JsonCommand):
    help = "List, add, edit, verify, withdraw and export observations, and confirm repeated ones."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=ACTIONS, help="what to do")
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("ids", nargs="*", type=int, help="ids (see list and offered)")
        parser.add_argument("--kind", choices=CATEGORIES, help="for list, add and move")
        parser.add_argument("--content", help="for add and edit")
        parser.add_argument("--source", help="for add and edit, for example GOAL:step-name")
        parser.add_argument("--reason", default="", help="for withdraw")
        parser.add_argument("--limit", type=count, default=50, help="for list: number of observations")
        parser.add_argument("--output", help="for export: write to this file")

    def run(self, *, action: str, workspace: str, ids: list[int], **options: Any) -> dict[str, Any]:
        found = find_workspace(workspace)
        if action == "list":
            rows = (
                Observation.objects.filter(workspace=found, withdrawn_at=None).select_related("hold").order_by("-id")
            )
            rows = rows.filter(category=options["kind"]) if options["kind"] else rows
            return {"observations": [observation_document(row) for row in rows[: options["limit"]]]}
        if action == "add":
            return _add(found, options)
        if action == "export":
            return output_document(observations_file(found), options["output"])
        if action in ("offered", "confirm", "apart"):
            return _confirmations(found, action, ids)
        return _edit(found, action, ids, options)

    def show(self, result: dict[str, Any]) -> None:
        for row in result.get("observations", []):
            self.line(f"{row['id']}. {row['category']}: {row['content']}")
        for row in result.get("offered", []):
            self.line(f"{row['id']}. {row['content']}  (similar to {row['known']!r})")
        show_outcome(self, result)


def _add(workspace: Workspace, options: dict[str, Any]) -> dict[str, Any]:
    said = NewObservation(options["kind"] or "finding", options["content"] or "", options["source"] or "")
    stored = store(workspace, [said], by=By(COMMAND, timezone.now()))
    return {
        "observations": [observation_document(row) for row in stored.added],
        "offered": [_offered(row) for row in stored.offered],
    }


def _offered(row: Confirmation) -> dict[str, Any]:
    return {
        "id": row.pk,
        "category": row.category,
        "content": row.content,
        "source": row.source,
        "known": row.observation.content,
        "known_id": row.observation_id,
        "similarity": round(row.similarity, 3),
    }


def _confirmations(workspace: Workspace, action: str, ids: list[int]) -> dict[str, Any]:
    offered = Confirmation.objects.filter(workspace=workspace, status=Confirmation.Status.OFFERED)
    for pk in ids if action != "offered" else []:
        row = offered.filter(pk=pk).first()
        if row is None:
            raise NotFound(f"{workspace.slug} has no open confirmation {pk}.")
        decide(row, is_same=action == "confirm", by=By(COMMAND, timezone.now()))
    rows = offered.select_related("observation").order_by("id")[:500]
    return {"offered": [_offered(row) for row in rows]}


def _edit(workspace: Workspace, action: str, ids: list[int], options: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {"reason": options["reason"]}
    if action in ("edit", "move"):
        values = given(options, content="content", source="source", category="kind")
        if action == "edit" and len(ids) > 1 and "content" in values:
            raise Invalid("--content can only be used with one observation.", code="bad_observation")
    asked = "assign" if action in ("edit", "move") else action
    return {"run": edit_now(COMMAND, workspace, "observations", asked, ids, values)}
