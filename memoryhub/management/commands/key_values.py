from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from knowledge_app.models import KeyValue
from knowledge_app.services.held_rows import held_fields
from knowledge_app.services.rows import key_values as service
from knowledge_app.services.rows.exporting import key_values_file
from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import NotFound
from memoryhub.management.json_command import JsonCommand, output_document
from memoryhub.management.row_edits import edit_now, finish, show_outcome
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By, record

COMMAND = Actor("command", "key_values")
MASK = "••••••••"
ACTIONS = ("get", "set", "list", "search", "history", "restore", "withdraw", "return", "export")


class Command(JsonCommand):
    help = "Get, set, list, search, restore, withdraw and export key-values."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=ACTIONS, help="what to do")
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("key", nargs="?", default="", help="a key; for list: a prefix; for search: a text")
        parser.add_argument(
            "value", nargs="?", default="", help="for set: the value; for withdraw and return: another key"
        )
        parser.add_argument("more", nargs="*", default=[], help="for withdraw and return: more keys")
        parser.add_argument("--state", type=int, help="for restore: number of the state (see history)")
        parser.add_argument("--reveal", action="store_true", help="for history: show secrets")
        parser.add_argument("--reason", default="", help="for withdraw")
        parser.add_argument("--output", help="for export: write to this file")

    def run(self, *, action: str, workspace: str, key: str, value: str, **options: Any) -> dict[str, Any]:
        found = find_workspace(workspace)
        if action == "list":
            return {"keys": service.list_keys(found, key)}
        if action == "search":
            rows = service.with_text(service.living(found), key).order_by("key")
            return {"found": [{"key": row.key, "value": MASK if row.is_secret else row.value} for row in rows]}
        if action == "get":
            return _get(found, key)
        if action == "set":
            row = service.write_value(found, key, value, by=By(COMMAND, timezone.now()))
            return {"key": row.key, "value": row.value, "masked": row.is_secret}
        if action == "export":
            _record_reveal(found, "exported the key-values")
            return output_document(key_values_file(found), options["output"])
        if action in ("withdraw", "return"):
            return _of_keys(found, action, [key, *filter(None, [value]), *options["more"]], options["reason"])
        return _of_key(found, action, key, options)

    def show(self, result: dict[str, Any]) -> None:
        for key in result.get("keys", []):
            self.line(key)
        for row in result.get("found", []):
            self.line(f"{row['key']}: {row['value']}")
        for state in result.get("states", []):
            self.line(f"{state['state']}. {state['at']} {state['reason']}: {state['value']}")
        show_outcome(self, result)
        if "value" in result:
            self.stdout.write(result["value"])


def _record_reveal(workspace: Workspace, words: str) -> None:
    text = f"{COMMAND.name} {words}"
    record(By(COMMAND, timezone.now()), "key_value.revealed", "workspace", workspace.pk, text, workspace=workspace)


def _get(workspace: Workspace, key: str) -> dict[str, Any]:
    row = service.find_key(workspace, key)
    if row.is_secret:
        _record_reveal(workspace, f"revealed the value of {key!r}")
    return {"key": row.key, "value": row.value, "json": row.is_json, **held_fields(row)}


def _of_key(workspace: Workspace, action: str, key: str, options: dict[str, Any]) -> dict[str, Any]:
    row = KeyValue.objects.select_related("workspace").filter(workspace=workspace, key=key).first()
    if row is None:
        raise NotFound(f"{workspace.slug} has no key {key!r}.", code="no_such_key")
    if action == "history":
        if options["reveal"]:
            _record_reveal(workspace, f"revealed the value of {key!r}")
        return {"states": [_state(state, reveal=options["reveal"]) for state in row.history.order_by("-history_id")]}
    run = service.restore_value(row, options["state"] or 0, by=By(COMMAND, timezone.now()))
    return {"run": finish(run)}


def _of_keys(workspace: Workspace, action: str, keys: list[str], reason: str) -> dict[str, Any]:
    """Withdraw or restore keys as one edit. Raises NotFound before anything changes."""
    found = dict(KeyValue.objects.filter(workspace=workspace, key__in=keys).values_list("key", "pk"))
    missing = next((key for key in keys if key not in found), None)
    if missing is not None:
        raise NotFound(f"{workspace.slug} has no key {missing!r}.", code="no_such_key")
    pks = [found[key] for key in keys]
    return {"run": edit_now(COMMAND, workspace, "key_values", action, pks, {"reason": reason})}


def _state(state: Any, *, reveal: bool) -> dict[str, Any]:
    return {
        "state": state.history_id,
        "value": MASK if state.is_secret and not reveal else state.value,
        "at": state.history_date,
        "reason": state.history_change_reason,
        "withdrawn": state.withdrawn_at is not None,
    }
