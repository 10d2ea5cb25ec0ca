"""A chat store of LlamaIndex in the hub.

from memoryhub.client.adapters.llama_index import HubChatStore

memory = ChatMemoryBuffer.from_defaults(chat_store=HubChatStore(hub), chat_store_key="llama:main")
"""

from __future__ import annotations

from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import ChatMessage
from llama_index.core.storage.chat_store import BaseChatStore

from memoryhub.client.adapters.items import Item, add_items, clear_items, read_items, replace_items
from memoryhub.client.hub import MemoryHub


class HubChatStore(BaseChatStore):
    """Keeps chats in the hub's sessions of the same keys. Deleting and setting messages needs the scope edit."""

    _hub: MemoryHub = PrivateAttr()

    def __init__(self, hub: MemoryHub, **fields: Any) -> None:
        super().__init__(**fields)
        self._hub = hub

    def get_messages(self, key: str) -> list[ChatMessage]:
        return [_message(item) for item in read_items(self._hub, key)]

    def add_message(self, key: str, message: ChatMessage) -> None:
        add_items(self._hub, key, to_items([message]))

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        replace_items(self._hub, key, to_items(messages))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        messages = self.get_messages(key)
        clear_items(self._hub, key)
        return messages or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        messages = self.get_messages(key)
        if not -len(messages) <= idx < len(messages):
            return None
        deleted = messages.pop(idx)
        self.set_messages(key, messages)
        return deleted

    def delete_last_message(self, key: str) -> ChatMessage | None:
        return self.delete_message(key, -1)

    def get_keys(self) -> list[str]:
        return [session["key"] for session in self._hub.sessions()]


def to_items(messages: list[ChatMessage]) -> list[Item]:
    """Return messages as the hub accepts them."""
    return [message.model_dump(mode="json") for message in messages]


def _message(item: Item) -> ChatMessage:
    if "blocks" in item:
        return ChatMessage.model_validate(item)
    more = {name: item[name] for name in ("tool_calls", "tool_call_id") if name in item}
    return ChatMessage(role=item["role"], content=item["content"], additional_kwargs=more)
