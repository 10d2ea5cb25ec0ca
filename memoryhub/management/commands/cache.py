from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from knowledge_app.models import CachedResponse
from knowledge_app.services.rows import cached_responses as service
from knowledge_app.services.rows.exporting import cache_file
from memoryhub.find_by_name import find_workspace
from memoryhub.management.json_command import JsonCommand, output_document
from memoryhub.management.row_edits import edit_now
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor

COMMAND = Actor("command", "cache")
ACTIONS = ("get", "put", "stats", "invalidate", "export")


class Command(JsonCommand):
    help = "Use the response cache: get, put or invalidate responses, show statistics, export."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=ACTIONS, help="what to do")
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument(
            "message",
            nargs="?",
            default="",
            help="for get and put; for invalidate: only the response to this message",
        )
        parser.add_argument("response", nargs="?", default="", help="for put")
        parser.add_argument("--model", default="", help="the model; for invalidate: all of its responses")
        parser.add_argument("--all", action="store_true", help="for invalidate: all responses")
        parser.add_argument("--output", help="for export: write to this file")

    def run(self, *, action: str, workspace: str, message: str, model: str, **options: Any) -> dict[str, Any]:
        found, now = find_workspace(workspace), timezone.now()
        if action == "get":
            response = service.look_up(found, message, model, now=now)
            return {"hit": response is not None, "response": response}
        if action == "put":
            row = service.keep(found, message, model, options["response"], now=now)
            return {"kept": row is not None, "key": service.cache_key(message, model)}
        if action == "invalidate":
            return _invalidate(found, message, model, everything=options["all"])
        if action == "export":
            return output_document(cache_file(found), options["output"])
        figures = service.figures(found, now)
        return {"hit_rate": figures.hit_rate, **vars(figures)}

    def show(self, result: dict[str, Any]) -> None:
        for name, value in result.items():
            self.line(f"{name}: {value}")


def _invalidate(workspace: Workspace, message: str, model: str, *, everything: bool) -> dict[str, Any]:
    rows = CachedResponse.objects.filter(workspace=workspace)
    if message:
        rows = rows.filter(key=service.cache_key(message, model))
    elif model:
        rows = rows.filter(model=model)
    elif not everything:
        rows = rows.none()
    pks = list(rows.values_list("pk", flat=True))
    return {"run": edit_now(COMMAND, workspace, "cached", "remove", pks)}
