"""Claude's memory tool for the Claude Agent SDK, with its files in the hub.

from memoryhub.client.adapters.claude_agent import memory_server

options = ClaudeAgentOptions(mcp_servers={"memory": memory_server(hub)}, allowed_tools=["mcp__memory__memory"])
"""

from __future__ import annotations

import asyncio
from typing import Any

from claude_agent_sdk import create_sdk_mcp_server, tool

from memoryhub.client.adapters.memory_directory import CommandError, MemoryDirectory
from memoryhub.client.hub import MemoryHub

DESCRIPTION = """Your memory directory /memories, which is kept between conversations.
View it before you start a task, and record what you will need again. Commands and their arguments:
view (path, view_range), create (path, file_text), str_replace (path, old_str, new_str),
insert (path, insert_line, insert_text), delete (path), rename (old_path, new_path)."""
COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
TEXTS = ("path", "file_text", "old_str", "new_str", "insert_text", "old_path", "new_path")
SCHEMA = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "enum": list(COMMANDS)},
        **{name: {"type": "string"} for name in TEXTS},
        "insert_line": {"type": "integer", "minimum": 0},
        "view_range": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
    },
    "required": ["command"],
}


def memory_server(hub: MemoryHub) -> Any:
    """Return an MCP server with the tool ``memory``, for ClaudeAgentOptions.mcp_servers."""
    directory = MemoryDirectory(hub)

    async def memory(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            text, is_error = await asyncio.to_thread(directory.run, arguments), False
        except CommandError as error:
            text, is_error = str(error), True
        return {"content": [{"type": "text", "text": text}], "is_error": is_error}

    return create_sdk_mcp_server("memoryhub", tools=[tool("memory", DESCRIPTION, SCHEMA)(memory)])
