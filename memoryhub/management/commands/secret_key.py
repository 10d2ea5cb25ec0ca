from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from memoryhub.management.json_command import JsonCommand
from sessions_app.services.audit import Actor, By
from sessions_app.services.secret_key import accept_key, require_known_key

COMMAND = Actor("command", "secret_key")
CONSEQUENCES = (
    "Create agents' tokens again, enter the API keys of the settings page again, and sign in again. Webhooks are "
    "signed with the new key, imports may bring back what was forgotten, and check_memory can't verify older audit "
    "records."
)


class Command(JsonCommand):
    help = "Check that the hub's secret key is the one that the database belongs to, or change it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--accept", action="store_true", help="use the hub's present key from now on, instead of the previous one"
        )

    def run(self, *, accept: bool, **_options: Any) -> dict[str, Any]:
        if accept:
            return {"changed": accept_key(by=By(COMMAND, timezone.now()))}
        require_known_key()
        return {"changed": False}

    def show(self, result: dict[str, Any]) -> None:
        if result["changed"]:
            self.line("The secret key was changed.")
            self.line(CONSEQUENCES)
        else:
            self.line("The hub's secret key is the database's.")
