from __future__ import annotations

from typing import Any

from memoryhub.forgetting.forget import vacuum
from memoryhub.lib.errors import MemoryHubError
from memoryhub.management.json_command import JsonCommand


class DatabaseBusy(MemoryHubError):
    """Others hold the database, or a transaction is open."""

    code = "database_busy"


class Command(JsonCommand):
    help = "Rewrite the database, so that nothing of deleted rows is left in its file."

    def run(self, **_options: Any) -> dict[str, Any]:
        if not vacuum():
            raise DatabaseBusy("The database is in use: try again at a quiet time, or stop the hub for a moment.")
        return {"vacuumed": True}

    def show(self, _result: dict[str, Any]) -> None:
        self.line("The database's file was rewritten.")
