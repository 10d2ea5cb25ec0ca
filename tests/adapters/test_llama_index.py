import asyncio

import pytest

pytest.importorskip("llama_index.core", reason="see make adapters")

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import ChatMemoryBuffer, Memory

from memoryhub.client.adapters.llama_index import HubChatStore
from memoryhub.client.adapters.llama_index_memory import HubMemoryBlock

KEY = "llama:main"


def test_a_chat_engine_keeps_its_messages(hub):
    memory = ChatMemoryBuffer.from_defaults(
        chat_store=HubChatStore(hub), chat_store_key=KEY, token_limit=1000, tokenizer_fn=str.split
    )
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory)

    engine.chat("I am Olga")

    assert next((one.role.value, one.content) for one in memory.get_all()) == ("user", "I am Olga")
    assert [one["role"] for one in hub.context(KEY)["messages"]] == ["user", "assistant"]


def test_messages_are_changed_and_deleted(hub):
    store = HubChatStore(hub)
    calls = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]
    messages = [
        ChatMessage("Hi"),
        ChatMessage("", role="assistant", additional_kwargs={"tool_calls": calls}),
        ChatMessage("42", role="tool", additional_kwargs={"tool_call_id": "c1"}),
    ]
    for message in messages:
        store.add_message(KEY, message)

    assert store.get_messages(KEY) == messages
    assert store.get_keys() == [KEY]
    assert store.delete_last_message(KEY) == messages[2]
    assert store.delete_message(KEY, 5) is None
    store.set_messages(KEY, messages[:1])
    assert asyncio.run(store.aget_messages(KEY)) == messages[:1]
    assert store.delete_messages(KEY) == messages[:1]
    assert store.get_messages(KEY) == []


def test_a_memory_block_recalls_and_keeps_older_messages(hub):
    hub.remember("Deploys go to eu-west-1.", category="finding")
    block = HubMemoryBlock(hub, KEY)
    memory = Memory.from_defaults(
        session_id="main", memory_blocks=[block], token_limit=60, token_flush_size=20, tokenizer_fn=str.split
    )

    async def use():
        await memory.aput(ChatMessage("Where do deploys go?"))
        return await memory.aget()

    assert "Deploys go to eu-west-1." in str(asyncio.run(use()))
    asyncio.run(block.aput([ChatMessage("An older message")], from_short_term_memory=True))
    assert [one["content"] for one in hub.context(KEY)["messages"]] == ["An older message"]
