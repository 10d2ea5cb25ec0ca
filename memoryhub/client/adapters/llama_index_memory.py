"""A memory block of LlamaIndex that recalls from the hub.

from memoryhub.client.adapters.llama_index_memory import HubMemoryBlock

memory = Memory.from_defaults(session_id="main", memory_blocks=[HubMemoryBlock(hub, session="llama:main")])
"""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import BaseMemoryBlock

from memoryhub.client.adapters.items import add_items
from memoryhub.client.adapters.llama_index import to_items
from memoryhub.client.hub import MemoryHub


class HubMemoryBlock(BaseMemoryBlock[str]):
    """Recalls what the hub knows about the latest message, and appends older messages to a session."""

    _hub: MemoryHub = PrivateAttr()
    _session: str = PrivateAttr()

    def __init__(self, hub: MemoryHub, session: str, name: str = "MemoryHub", **fields: Any) -> None:
        super().__init__(name=name, **fields)
        self._hub = hub
        self._session = session

    async def _aget(self, messages: list[ChatMessage] | None = None, **_options: Any) -> str:
        query = next((one.content for one in reversed(messages or []) if one.role == "user" and one.content), "")
        found = await asyncio.to_thread(self._hub.recall, query[:500]) if query else None
        if not found:
            return ""
        known = [*found["findings"], *found["insights"], *found["lessons"]]
        return "\n".join(dict.fromkeys([*known, *(memory["text"] for memory in found["memories"])]))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await asyncio.to_thread(add_items, self._hub, self._session, to_items(messages))
