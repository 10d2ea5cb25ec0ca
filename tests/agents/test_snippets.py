"""The snippets of the Connect page are valid configuration of each program."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from html import unescape
from pathlib import Path

import pytest
from django.urls import reverse

from memoryhub.agents.snippets import PROGRAMS, http_config, program_snippets, stdio_config
from memoryhub.agents.views import KINDS

ADDRESS = "https://hub.example/mcp"
TOKEN = "mh_0123456789_" + "a" * 43
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SERVERS = {  # what each program's documentation asks for, for a server over HTTP with a header
    "claude-code": {"mcpServers": {"memoryhub": {"type": "http", "url": ADDRESS, "headers": BEARER}}},
    "codex": {"mcp_servers": {"memoryhub": {"url": ADDRESS, "http_headers": BEARER}}},
    "gemini-cli": {"mcpServers": {"memoryhub": {"httpUrl": ADDRESS, "headers": BEARER}}},
    "opencode": {"mcp": {"memoryhub": {"type": "remote", "url": ADDRESS, "headers": BEARER, "oauth": False}}},
    "openclaw": {
        "mcp": {"servers": {"memoryhub": {"url": ADDRESS, "transport": "streamable-http", "headers": BEARER}}}
    },
    "cursor": {"mcpServers": {"memoryhub": {"url": ADDRESS, "headers": BEARER}}},
}
HTTP = ["mcp", "add", "--scope", "user", "--transport", "http", "memoryhub", ADDRESS]
HTTP += ["--header", f"Authorization: Bearer {TOKEN}"]


def snippets() -> dict:
    return {one.kind: one for one in program_snippets(ADDRESS, TOKEN)}


def copied(html: str, name: str) -> str:
    """Return what the button beside a snippet copies."""
    return unescape(re.search(rf'<pre id="{name}"[^>]*>(.*?)</pre>', html, re.DOTALL)[1])


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_snippet_has_the_keys_that_the_program_reads(kind):
    snippet = snippets()[kind]

    parse = tomllib.loads if snippet.file.endswith(".toml") else json.loads
    assert parse(snippet.config) == SERVERS[kind]


def test_commands_are_split_by_a_shell_as_the_programs_expect():
    commands = {kind: shlex.split(one.command.replace("\\\n", "")) for kind, one in snippets().items() if one.command}

    openclaw = commands.pop("openclaw")
    assert commands == {"claude-code": ["claude", *HTTP], "gemini-cli": ["gemini", *HTTP]}
    assert openclaw[:-1] == ["openclaw", "mcp", "set", "memoryhub"]
    assert json.loads(openclaw[-1]) == SERVERS["openclaw"]["mcp"]["servers"]["memoryhub"]


def test_paths_and_addresses_with_quotes_stay_valid():
    odd = Path('/home/ann "a" o\'b\\c')

    server = json.loads(stdio_config("python3", odd / "manage.py", odd, "mh_…"))["mcpServers"]["memoryhub"]

    assert (server["args"], server["env"]["MEMORYHUB_HOME"]) == ([str(odd / "manage.py"), "mcp_server"], str(odd))
    assert json.loads(http_config("http://[::1]:8765/mcp", "mh_…"))["mcpServers"]["memoryhub"]["url"].endswith("/mcp")


@pytest.mark.django_db
def test_the_page_has_a_snippet_for_each_program_first(workspace, viewer_client, settings):
    settings.MEMORYHUB_URL = "https://hub.example"

    page = viewer_client.get(reverse("connect", args=["atlas"]))

    assert KINDS[: len(PROGRAMS)] == PROGRAMS
    html = page.content.decode()
    assert html.index("Claude Code") < html.index("Cursor") < html.index("HTTP (curl)")
    for one in page.context["programs"]:
        assert copied(html, f"{one.kind}-lines") == one.config
        assert ADDRESS in one.config
        assert not one.command or copied(html, f"{one.kind}-command") == one.command
    assert copied(html, "mcp-http-lines") == page.context["http_config"]
    assert copied(html, "mcp-stdio-lines") == page.context["stdio_config"]


@pytest.mark.django_db
def test_the_stdio_snippet_opens_this_hub_s_database(workspace, viewer_client, settings):
    page = viewer_client.get(reverse("connect", args=["atlas"]))

    server = json.loads(page.context["stdio_config"])["mcpServers"]["memoryhub"]
    assert server["env"]["MEMORYHUB_HOME"] == str(settings.MEMORYHUB_HOME)
    assert server["command"] == sys.executable
    assert Path(server["args"][0]).is_file()


@pytest.mark.django_db
def test_a_new_token_reads_and_appends_unless_more_is_chosen(workspace, admin_client):
    page = admin_client.get(reverse("new-token", args=["atlas"]))

    assert page.context["form"]["scopes"].value() == ["read", "append"]
