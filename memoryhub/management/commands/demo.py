from __future__ import annotations

from typing import Any

from django.utils import timezone

from memoryhub.demo.building import build_demo
from memoryhub.jobs.labels import added_label
from memoryhub.management.json_command import JsonCommand
from memoryhub.models import Process
from memoryhub.processes import registered
from sessions_app.services.audit import Actor, By


class Command(JsonCommand):
    help = "Create the demo: four months of four agents of an invented software team."

    def run(self, *_args: Any, **_options: Any) -> dict[str, Any]:
        with registered(Process.Kind.COMMAND):
            built = build_demo(by=By(Actor("command", "demo"), timezone.now()))
        return {
            "workspaces": [
                {"workspace": one.workspace.slug, "added": dict(one.added)} for one in built if one.workspace
            ]
        }

    def show(self, result: dict[str, Any]) -> None:
        for row in result["workspaces"]:
            counts = added_label(row["added"])
            self.line(f"{row['workspace']}: {counts or 'nothing new'}")
