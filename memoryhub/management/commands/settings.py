from __future__ import annotations

from dataclasses import asdict
from typing import Any

from memoryhub.dashboard.hub_settings import hub, knobs
from memoryhub.management.json_command import JsonCommand


class Command(JsonCommand):
    help = "Show the hub's settings with their values and sources, without secrets."

    def run(self, **_options: Any) -> dict[str, Any]:
        return {"hub": asdict(hub()), "settings": [asdict(knob) for knob in knobs()]}

    def show(self, result: dict[str, Any]) -> None:
        for knob in result["settings"]:
            self.line(f"{knob['name']:<32} {knob['source']:<12} {knob['value'] or '(not set)'}")
