from __future__ import annotations

from typing import Any

from memoryhub.forgetting.forget import vacuum
from memoryhub.lib.errors import Busy
from memoryhub.management.json_command import JsonCommand


class Command(JsonCommand):
    help = "Rewrite the database file, so that it contains no remains of deleted rows."

    def run(self, **_options: Any) -> dict[str, Any]:
        if not vacuum():
            raise Busy("The database is in use. Try again later, or stop the hub first.", code="database_busy")
        return {"vacuumed": True}

    def show(self, _result: dict[str, Any]) -> None:
        self.line("The database file was rewritten.")
