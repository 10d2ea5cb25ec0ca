from __future__ import annotations

import pytest

pydantic_ai = pytest.importorskip("pydantic_ai", reason="see make adapters")

from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart  # noqa: E402
from pydantic_ai.models.function import FunctionModel  # noqa: E402
from pydantic_ai.models.test import TestModel  # noqa: E402

from memoryhub.client.adapters.pydantic_ai import HubHistory  # noqa: E402

KEY = "pydantic:main"


def test_runs_continue_a_conversation(hub):
    agent = pydantic_ai.Agent(TestModel(), system_prompt="You add.")

    @agent.tool_plain
    def add(a: int) -> dict:
        return {"sum": a}

    history = HubHistory(hub, KEY)
    first = agent.run_sync("How much?", message_history=history.messages())
    history.add(first.new_messages())
    assert history.messages() == first.all_messages()
    second = agent.run_sync("And now?", message_history=history.messages())
    history.add(second.new_messages())

    assert history.messages() == second.all_messages()
    messages = hub.context(KEY)["messages"]
    assert [message["role"] for message in messages[:4]] == ["user", "assistant", "tool", "assistant"]
    assert messages[1]["tool_calls"][0]["function"]["name"] == "add"
    assert messages[2]["content"] == '{"sum": 0}'


def test_thinking_comes_back_and_messages_of_others_are_converted(hub):
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    hub.append(KEY, "How much?")
    hub.append(KEY, [{"role": "assistant", "content": "Wait.", "tool_calls": [call]}])
    hub.append(KEY, [{"role": "tool", "tool_call_id": "c1", "content": "42"}])
    history = HubHistory(hub, KEY)
    thought = ModelResponse([ThinkingPart("hm", signature="s"), TextPart("It is 42.")])
    history.add([thought])
    seen = []

    def model(messages, _info):
        seen.extend(messages)
        return ModelResponse([TextPart("Yes.")])

    result = pydantic_ai.Agent(FunctionModel(model)).run_sync("Sure?", message_history=history.messages())

    assert result.output == "Yes."
    assert [part.part_kind for message in seen for part in message.parts] == [
        "user-prompt",
        "text",
        "tool-call",
        "tool-return",
        "thinking",
        "text",
        "user-prompt",
    ]
    assert history.messages()[-1] == thought
    history.clear()
    assert history.messages() == []
