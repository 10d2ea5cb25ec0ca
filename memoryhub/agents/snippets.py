"""What to add to the configuration of each program, so that it uses the hub over MCP.

Each program documents its keys: code.claude.com/docs/en/mcp, developers.openai.com/codex/mcp,
geminicli.com/docs/tools/mcp-server, opencode.ai/docs/mcp-servers, docs.openclaw.ai/cli/mcp and cursor.com/docs/mcp.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

NAME = "memoryhub"  # of the server, in every program
PROGRAMS = ("claude-code", "codex", "gemini-cli", "opencode", "openclaw", "cursor")


@dataclass(frozen=True)
class Snippet:
    """``config``: what to add to ``file``, JSON or TOML. ``command`` does the same in a shell, or is ""."""

    kind: str
    title: str
    file: str
    config: str
    command: str = ""


def program_snippets(address: str, token: str) -> list[Snippet]:
    """Return the snippets of PROGRAMS, for the address of the MCP endpoint and a token."""
    value = f"Bearer {token}"
    headers = {"Authorization": value}
    header, url = shlex.quote(f"Authorization: {value}"), shlex.quote(address)
    http = f"mcp add --scope user --transport http {NAME} {url} \\\n  --header {header}"
    opencode = {"type": "remote", "url": address, "headers": headers, "oauth": False}
    openclaw = {"url": address, "transport": "streamable-http", "headers": headers}
    toml = f"[mcp_servers.{NAME}]\nurl = {_json(address)}\nhttp_headers = {{ Authorization = {_json(value)} }}"
    return [
        Snippet("claude-code", "Claude Code", "~/.claude.json", http_config(address, token), f"claude {http}"),
        Snippet("codex", "Codex", "~/.codex/config.toml", toml),
        Snippet(
            "gemini-cli",
            "Gemini CLI",
            "~/.gemini/settings.json",
            _servers({"httpUrl": address, "headers": headers}),
            f"gemini {http}",
        ),
        Snippet("opencode", "OpenCode", "~/.config/opencode/opencode.json", _json({"mcp": {NAME: opencode}})),
        Snippet(
            "openclaw",
            "OpenClaw",
            "~/.openclaw/openclaw.json",
            _json({"mcp": {"servers": {NAME: openclaw}}}),
            f"openclaw mcp set {NAME} {shlex.quote(json.dumps(openclaw, ensure_ascii=False))}",
        ),
        Snippet("cursor", "Cursor", "~/.cursor/mcp.json", _servers({"url": address, "headers": headers})),
    ]


def http_config(address: str, token: str) -> str:
    """Return the form that most programs share."""
    return _servers({"type": "http", "url": address, "headers": {"Authorization": f"Bearer {token}"}})


def stdio_config(python: str, manage: Path, home: Path, token: str) -> str:
    """Return the form that most programs share, for a server that the program starts itself."""
    environment = {"MEMORYHUB_HOME": str(home), "MEMORYHUB_TOKEN": token}
    return _servers({"command": python, "args": [str(manage), "mcp_server"], "env": environment})


def _servers(server: dict[str, object]) -> str:
    return _json({"mcpServers": {NAME: server}})


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
