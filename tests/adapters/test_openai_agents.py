from __future__ import annotations

import asyncio

import pytest

agents = pytest.importorskip("agents", reason="see make adapters")

from agents.items import ModelResponse  # noqa: E402
from agents.memory import Session  # noqa: E402
from agents.usage import Usage  # noqa: E402
from openai.types.responses import (  # noqa: E402
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)

from memoryhub.client.adapters.openai_agents import HubSession  # noqa: E402

KEY = "agents:main"


class ScriptedModel(agents.Model):
    """Returns prepared outputs and records what it was sent."""

    def __init__(self, *outputs) -> None:
        self.outputs = list(outputs)
        self.sent = []

    async def get_response(self, *arguments, **options):
        self.sent.append(options["input"] if "input" in options else arguments[1])
        return ModelResponse(output=self.outputs.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *_rest, **_options):
        raise NotImplementedError


def answer(text):
    content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
    return ResponseOutputMessage(id="m1", type="message", role="assistant", status="completed", content=content)


@agents.function_tool
def add(a: int, b: int) -> int:
    return a + b


def test_runs_continue_a_session(hub):
    thought = ResponseReasoningItem(id="r1", type="reasoning", summary=[], encrypted_content="secret")
    call = ResponseFunctionToolCall(type="function_call", call_id="c1", name="add", arguments='{"a": 40, "b": 2}')
    model = ScriptedModel([thought, call], [answer("It is 42.")], [answer("Still 42.")])
    agent = agents.Agent(name="adder", model=model, tools=[add])
    config = agents.RunConfig(tracing_disabled=True)

    for question in ("How much is 40 + 2?", "Are you sure?"):
        result = asyncio.run(agents.Runner.run(agent, question, session=HubSession(hub, KEY), run_config=config))

    assert result.final_output == "Still 42."
    assert [item.get("type", item.get("role")) for item in model.sent[2]] == [
        "user",
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
        "user",
    ]
    messages = hub.context(KEY)["messages"]
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert messages[2]["content"] == "42"


def test_items_are_returned_as_they_were_added(hub):
    session = HubSession(hub, KEY)
    assert isinstance(session, Session)
    items = [
        {"role": "user", "content": "Hi"},
        {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]},
    ]

    async def use():
        await session.add_items(items)
        assert await session.get_items() == items
        assert await session.get_items(limit=1) == items[-1:]
        assert await session.pop_item() == items[-1]
        assert await session.get_items() == items[:-1]
        await session.clear_session()
        assert (await session.get_items(), await session.pop_item()) == ([], None)

    asyncio.run(use())


def test_messages_of_others_become_items(hub):
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    hub.append(KEY, [{"role": "assistant", "content": "Wait.", "tool_calls": [call]}])
    hub.append(KEY, [{"role": "tool", "tool_call_id": "c1", "content": "42"}])

    items = asyncio.run(HubSession(hub, KEY).get_items())

    assert items == [
        {"role": "assistant", "content": "Wait."},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
    ]
