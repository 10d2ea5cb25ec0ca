import pytest

pytest.importorskip("langchain_core", reason="see make adapters")

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.runnables.history import RunnableWithMessageHistory

from memoryhub.client.adapters.langchain import HubChatMessageHistory

KEY = "langchain:main"


def test_a_chat_has_a_history(hub):
    model = FakeListChatModel(responses=["Hello Olga", "Olga"])
    chain = RunnableWithMessageHistory(model, lambda session: HubChatMessageHistory(hub, session))

    for text in ("I am Olga", "Who am I?"):
        chain.invoke([HumanMessage(text)], config={"configurable": {"session_id": KEY}})

    texts = ["I am Olga", "Hello Olga", "Who am I?", "Olga"]
    assert [message.content for message in HubChatMessageHistory(hub, KEY).messages] == texts
    assert [message["content"] for message in hub.context(KEY)["messages"]] == texts


def test_messages_are_returned_as_they_were_added(hub):
    history = HubChatMessageHistory(hub, KEY)
    call = {"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"}
    messages = [
        HumanMessage("How much?", id="h1"),
        AIMessage([{"type": "thinking", "thinking": "hm", "signature": "s"}], tool_calls=[call]),
        ToolMessage("42", tool_call_id="c1", status="error"),
    ]

    history.add_messages(messages)
    history.add_message(AIMessageChunk("It is 42."))
    hub.append(KEY, "And now?")

    assert history.messages == [*messages, AIMessage("It is 42."), HumanMessage("And now?")]
    assert hub.context(KEY)["messages"][1]["tool_calls"][0]["function"]["name"] == "add"
    history.clear()
    assert history.messages == []
