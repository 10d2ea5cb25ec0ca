"""A session of the OpenAI Agents SDK (openai-agents) in the hub.

from memoryhub.client.adapters.openai_agents import HubSession

session = HubSession(hub, "agents:main")
result = await Runner.run(agent, "Which region do we deploy to?", session=session)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from agents.memory.session_settings import SessionSettings, resolve_session_limit

from memoryhub.client.adapters.items import Item, add_items, clear_items, read_items, replace_items
from memoryhub.client.hub import MemoryHub


class HubSession:
    """Keeps the items of a conversation, with their tool calls and reasoning, in the hub's session ``session_id``."""

    session_settings: SessionSettings | None

    def __init__(self, hub: MemoryHub, session_id: str, session_settings: SessionSettings | None = None) -> None:
        self._hub = hub
        self.session_id = session_id
        self.session_settings = session_settings

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items in order, the latest ``limit`` if given."""
        items = await asyncio.to_thread(self._items)
        latest = resolve_session_limit(limit, self.session_settings)
        return items if latest is None else items[max(0, len(items) - max(0, latest)) :]

    async def add_items(self, items: list[Any]) -> None:
        await asyncio.to_thread(add_items, self._hub, self.session_id, items)

    async def pop_item(self) -> Any | None:
        """Remove and return the latest item. The hub keeps it in an earlier epoch of the session."""
        items = await asyncio.to_thread(self._items)
        if not items:
            return None
        await asyncio.to_thread(replace_items, self._hub, self.session_id, items[:-1])
        return items[-1]

    async def clear_session(self) -> None:
        await asyncio.to_thread(clear_items, self._hub, self.session_id)

    def _items(self) -> list[Item]:
        return [part for item in read_items(self._hub, self.session_id) for part in _responses_items(item)]


def _responses_items(item: Item) -> Iterator[Item]:
    """Yield a chat message, such as one that a person added, as items of the Responses API."""
    if "type" in item or "role" not in item:
        yield item
        return
    if item["role"] == "tool":
        yield {"type": "function_call_output", "call_id": item.get("tool_call_id"), "output": item["content"]}
        return
    if item["content"]:
        yield {"role": item["role"], "content": item["content"]}
    for call in item.get("tool_calls", ()):
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}
