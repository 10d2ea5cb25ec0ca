"""Serve the memory to one agent over standard input and output, as programs start MCP servers."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import timezone

from memoryhub.agents.tokens import Caller, NotAuthenticated, authenticate, spend_call
from memoryhub.mcp.server import build_server


class Command(BaseCommand):
    help = "Serves the memory of a token's workspace over standard input and output (MCP)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--token-file", help="file that holds the token (default: the token in MEMORYHUB_TOKEN)", metavar="FILE"
        )

    def handle(self, *, token_file: str | None, **_options: Any) -> None:
        token = _token(token_file)

        def find_caller(_request: object, now: datetime) -> Caller:
            caller = authenticate(token, via="mcp", now=now)
            spend_call(caller, now)
            return caller

        try:
            authenticate(token, via="mcp", now=timezone.now())
        except NotAuthenticated as problem:
            raise CommandError(problem.message) from problem
        except DatabaseError as problem:
            first_line = str(problem).strip().partition("\n")[0]
            raise CommandError(
                f"The hub's database can't be used ({first_line}): start `serve` once, or set MEMORYHUB_HOME and "
                "DATABASE_URL as they are for the hub."
            ) from problem
        build_server(find_caller).run("stdio")


def _token(file: str | None) -> str:
    if not file:
        if not settings.MEMORYHUB_TOKEN:
            raise CommandError("Name the token: --token-file FILE, or MEMORYHUB_TOKEN in the environment.")
        return str(settings.MEMORYHUB_TOKEN).strip()
    try:
        return Path(file).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise CommandError(f"{file} can't be read as a token: {problem}.") from problem
