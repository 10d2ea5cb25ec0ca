"""Serve a workspace's memory over MCP on standard input and output."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.utils import timezone

from memoryhub.agents.api_tokens import Caller, NotAuthenticated, authenticate
from memoryhub.agents.call_limits import spend_call
from memoryhub.backups.errors import RestoreUnderWay
from memoryhub.backups.in_use_lock import require_finished_restore
from memoryhub.forgetting.cached_texts import erasures_followed
from memoryhub.mcp import handshake
from memoryhub.mcp.server import build_server


class Command(BaseCommand):
    help = "Serve the memory of a token's workspace over MCP on standard input and output."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--token-file", help="file with the token (default: MEMORYHUB_TOKEN)", metavar="FILE")

    def handle(self, *, token_file: str | None, **_options: Any) -> None:
        token = _token(token_file)

        def find_caller(_request: object, now: datetime) -> Caller:
            caller = authenticate(token, via="mcp", now=now)
            spend_call(caller, now)
            return caller

        try:
            require_finished_restore(connection)
            authenticate(token, via="mcp", now=timezone.now())
        except (NotAuthenticated, RestoreUnderWay) as problem:
            raise CommandError(problem.message) from problem
        except DatabaseError as problem:
            first_line = str(problem).strip().partition("\n")[0]
            raise CommandError(
                f"The hub's database can't be used ({first_line}). Run `serve` once, or set MEMORYHUB_HOME and "
                "DATABASE_URL to the hub's values."
            ) from problem
        server = build_server(find_caller)
        with erasures_followed():
            if handshake.wire:
                anyio.run(server.serve_wire, handshake.wire)
            else:
                server.run("stdio")


def _token(file: str | None) -> str:
    if not file:
        if not settings.MEMORYHUB_TOKEN:
            raise CommandError("No token: use --token-file FILE, or set MEMORYHUB_TOKEN.")
        return str(settings.MEMORYHUB_TOKEN).strip()
    try:
        return Path(file).expanduser().read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise CommandError(f"The token can't be read from {file}: {problem}.") from problem
