import asyncio
from importlib.util import find_spec

import pytest

NOTES = "/memories/work/notes.md"


@pytest.mark.skipif(find_spec("anthropic") is None, reason="see make adapters")
def test_the_anthropic_sdk_executes_the_tool(hub):
    from anthropic.lib.tools import ToolError

    from memoryhub.client.adapters.anthropic_memory import HubMemoryTool

    tool = HubMemoryTool(hub)

    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
    tool.call({"command": "create", "path": NOTES, "file_text": "tabs"})
    assert tool.call({"command": "view", "path": NOTES}).endswith("     1\ttabs")
    with pytest.raises(ToolError):
        tool.call({"command": "view", "path": "/etc/passwd"})


@pytest.mark.skipif(find_spec("claude_agent_sdk") is None, reason="see make adapters")
def test_the_claude_agent_sdk_serves_the_tool(hub):
    from mcp import Client

    from memoryhub.client.adapters.claude_agent import memory_server

    async def use():
        async with Client(memory_server(hub)["instance"]) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            await client.call_tool("memory", {"command": "create", "path": NOTES, "file_text": "tabs"})
            found = await client.call_tool("memory", {"command": "view", "path": NOTES})
            failed = await client.call_tool("memory", {"command": "view", "path": "/etc/passwd"})
            return listed, found.content[0].text, failed.is_error

    listed, text, failed = asyncio.run(use())
    assert (listed, text.endswith("     1\ttabs"), failed) == (["memory"], True, True)
    assert hub.read("memories/work/notes.md") == "tabs"
