"""The history of a LangChain chat in the hub.

from memoryhub.client.adapters.langchain import HubChatMessageHistory

chain = RunnableWithMessageHistory(model, lambda session: HubChatMessageHistory(hub, session))
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    BaseMessage,
    BaseMessageChunk,
    convert_to_messages,
    message_chunk_to_message,
    messages_from_dict,
    messages_to_dict,
)

from memoryhub.client.adapters.items import Item, add_items, clear_items, read_items
from memoryhub.client.hub import MemoryHub


class HubChatMessageHistory(BaseChatMessageHistory):
    """Keeps the messages of a chat in the hub's session ``session``. ``clear`` needs the scope edit."""

    def __init__(self, hub: MemoryHub, session: str) -> None:
        super().__init__()
        self._hub = hub
        self._session = session

    @property
    def messages(self) -> list[BaseMessage]:
        """Return the messages as they were added, and others, such as those that a person added, converted."""
        return [_message(item) for item in read_items(self._hub, self._session)]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        whole = [message_chunk_to_message(one) if isinstance(one, BaseMessageChunk) else one for one in messages]
        add_items(self._hub, self._session, messages_to_dict(whole))

    def clear(self) -> None:
        """Start with an empty history. The hub keeps the earlier messages."""
        clear_items(self._hub, self._session)


def _message(item: Item) -> BaseMessage:
    [message] = messages_from_dict([item]) if "data" in item else convert_to_messages([item])
    return message
