"""The message history of a pydantic-ai agent in the hub.

from memoryhub.client.adapters.pydantic_ai import HubHistory

history = HubHistory(hub, "agents:main")
result = agent.run_sync("Which region do we deploy to?", message_history=history.messages())
history.add(result.new_messages())
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from memoryhub.client.adapters.items import Item, add_items, clear_items, read_items
from memoryhub.client.hub import MemoryHub


class HubHistory:
    """Keeps the messages of a conversation in the hub's session ``session``. ``clear`` needs the scope edit."""

    def __init__(self, hub: MemoryHub, session: str) -> None:
        self._hub = hub
        self._session = session

    def messages(self) -> list[ModelMessage]:
        """Return the messages as they were added, and others, such as those that a person added, converted."""
        names: dict[str, str] = {}  # of tools by the id of the call
        return [_message(item, names) for item in read_items(self._hub, self._session)]

    def add(self, messages: Sequence[ModelMessage]) -> None:
        """Append messages, for example the ``new_messages()`` of a run."""
        add_items(self._hub, self._session, json.loads(ModelMessagesTypeAdapter.dump_json(list(messages))))

    def clear(self) -> None:
        """Start with an empty history. The hub keeps the earlier messages."""
        clear_items(self._hub, self._session)


def _message(item: Item, names: dict[str, str]) -> ModelMessage:
    if "parts" in item:
        [message] = ModelMessagesTypeAdapter.validate_python([item])
        return message
    role, content = item["role"], item["content"]
    if role == "assistant":
        calls = [(call["id"], call["function"]) for call in item.get("tool_calls", ())]
        names.update({call_id: function["name"] for call_id, function in calls})
        parts = [ToolCallPart(call["name"], call["arguments"], call_id) for call_id, call in calls]
        return ModelResponse([TextPart(content), *parts] if content else parts)
    if role == "tool":
        call_id = item["tool_call_id"]
        return ModelRequest([ToolReturnPart(names.get(call_id, "tool"), content, call_id)])
    return ModelRequest([UserPromptPart(content) if role == "user" else SystemPromptPart(content)])
