from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from mcp import Client, StdioServerParameters

from knowledge_app.models import KeyValue
from tests.api.conftest import token_for

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"


def address_of_database() -> str:
    values = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{values['NAME']}"
    return f"postgres://{values['USER']}:{values['PASSWORD']}@{values['HOST']}:{values['PORT']}/{values['NAME']}"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_stdio_server_runs_from_any_folder(workspace, tmp_path):
    (tmp_path / "token").write_text(token_for(workspace, "read", "edit"))
    noise = []
    server = StdioServerParameters(
        command=sys.executable,
        args=[str(MANAGE), "mcp_server", "--token-file", str(tmp_path / "token")],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "MEMORYHUB_HOME": str(settings.MEMORYHUB_HOME),
            "MEMORYHUB_SECRET_KEY": settings.SECRET_KEY,
            "DATABASE_URL": address_of_database(),
        },
    )

    async def hear(message):
        noise.append(message)

    async def run():
        async with Client(server, message_handler=hear) as client:
            written = await client.call_tool("memory_write", {"key": "theme", "value": "dark"})
            refused = await client.call_tool("history_append", {"content": "x"})
            return written, refused

    written, refused = asyncio.run(run())

    assert written.content[0].text == "Saved theme."
    assert refused.content[0].text.startswith("scope_missing: ")
    assert KeyValue.objects.get().value == "dark"
    assert noise == []  # output that isn't a message


@pytest.mark.django_db
def test_the_command_reports_a_missing_or_invalid_token(settings, tmp_path):
    with pytest.raises(CommandError, match="MEMORYHUB_TOKEN"):
        call_command("mcp_server")
    with pytest.raises(CommandError, match="The token can't be read"):
        call_command("mcp_server", token_file=str(tmp_path / "missing"))
    settings.MEMORYHUB_TOKEN = "mh_nonsense"
    with pytest.raises(CommandError, match="Send a token of this hub"):
        call_command("mcp_server")
