from __future__ import annotations

from dataclasses import asdict
from typing import Any

from memoryhub.dashboard.hub_settings import hub, list_settings
from memoryhub.management.json_command import JsonCommand


class Command(JsonCommand):
    help = "Show the hub's settings with their values and sources, without secrets."

    def run(self, **_options: Any) -> dict[str, Any]:
        return {"hub": asdict(hub()), "settings": [asdict(setting) for setting in list_settings()]}

    def show(self, result: dict[str, Any]) -> None:
        for setting in result["settings"]:
            self.line(f"{setting['name']:<32} {setting['source']:<12} {setting['value'] or '(not set)'}")
