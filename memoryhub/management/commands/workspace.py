from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.forms import model_to_dict
from django.utils import timezone

from memoryhub.as_json import settings_document
from memoryhub.dashboard.settings_forms import WorkspaceSettingsForm
from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import Invalid
from memoryhub.management.json_command import JsonCommand
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.workspaces import create_workspace, save_settings

COMMAND = Actor("command", "workspace")
NAMES = WorkspaceSettingsForm.Meta.fields


class Command(JsonCommand):
    help = "Create a workspace for an agent that writes to the hub, or show or change its settings."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=("create", "show", "set"), help="what to do")
        parser.add_argument("workspace", help="slug or name of the workspace; for create: its name")
        parser.add_argument("values", nargs="*", metavar="NAME=VALUE", help=f"settings: {', '.join(NAMES)}")

    def run(self, *, action: str, workspace: str, values: list[str], **_options: Any) -> dict[str, Any]:
        if action == "create":
            made = create_workspace(workspace, by=By(COMMAND, timezone.now()))
            return settings_document(made, NAMES)
        found = find_workspace(workspace)
        changed = _set(found, values) if action == "set" else {}
        return settings_document(found, NAMES) | {"changed": changed}

    def show(self, result: dict[str, Any]) -> None:
        self.line(result["workspace"])
        for name, value in result["settings"].items():
            mark = "  (changed)" if name in result.get("changed", {}) else ""
            self.line(f"  {name:<26}{'' if value is None else value}{mark}")


def _set(workspace: Workspace, pairs: list[str]) -> dict[str, Any]:
    wanted = dict(pair.partition("=")[::2] for pair in pairs)
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise Invalid(
            f"Unknown setting {unknown[0]!r}: use {', '.join(NAMES)}.", code="bad_setting", field=unknown[0]
        )
    off = {name for name, value in wanted.items() if value.lower() in ("0", "false", "no", "off")}
    data = {name: "" if value is None else value for name, value in model_to_dict(workspace, NAMES).items()} | wanted
    switches = [name for name in NAMES if isinstance(getattr(workspace, name), bool)]
    data |= {name: "" for name in switches if name in off}
    form = WorkspaceSettingsForm(data, instance=Workspace.objects.get(pk=workspace.pk))
    if not form.is_valid():
        field, errors = next(iter(form.errors.items()))
        raise Invalid(f"{field}: {' '.join(str(error) for error in errors)}", code="bad_setting", field=field)
    return save_settings(workspace, form.cleaned_data, by=By(COMMAND, timezone.now()))
