"""Messages of agent frameworks, as their programs write them."""

from __future__ import annotations

from typing import Any

import pytest

from memoryhub.lib.message_shapes import ITEMS, BadItem, chat_messages

CALL = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]
FUNCTION_CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'}
FUNCTION_OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "42"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 42."}]}
CALLED = {"role": "assistant", "content": "", "tool_calls": CALL}
RESULT = {"role": "tool", "content": "42", "tool_call_id": "c1"}
TEXT = {"type": "text", "text": "Let me see."}
TOOL_USE = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
TOOL_RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "42"}]}
PAI_CALL = {"part_kind": "tool-call", "tool_name": "add", "args": {"a": 1}, "tool_call_id": "c1"}
PAI_RETURN = {"part_kind": "tool-return", "tool_name": "add", "content": 42, "tool_call_id": "c1"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
HOSTED = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}


def said(*rows: Any) -> list[dict[str, Any]]:
    """Return the chat messages of a batch without the originals."""
    return [{name: value for name, value in message.items() if name != ITEMS} for _, message in chat_messages(rows)]


CASES = {
    "chat message": ([{"role": "user", "content": "Hi", "metadata": {"a": 1}}], None),
    "chat message with an image": ([{"role": "user", "content": [TEXT, IMAGE]}], None),
    "Responses call and result": ([FUNCTION_CALL, FUNCTION_OUTPUT], [CALLED, RESULT]),
    "Responses message": ([ANSWER], [{"role": "assistant", "content": "It is 42."}]),
    "Responses input parts": (
        [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
        [{"role": "user", "content": "Hi"}],
    ),
    "Responses refusal": (
        [{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}],
        [{"role": "assistant", "content": "No."}],
    ),
    "Anthropic call": (
        [
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, TEXT, TOOL_USE],
            }
        ],
        [{**CALLED, "content": "Let me see.", "reasoning": ["hm"]}],
    ),
    "Anthropic result and text": (
        [{"role": "user", "content": [TOOL_RESULT, {"type": "text", "text": "And now?"}]}],
        [RESULT, {"role": "user", "content": "And now?"}],
    ),
    "Anthropic error": (
        [{"role": "user", "content": [{**TOOL_RESULT, "is_error": True}]}],
        [RESULT | {"is_error": True}],
    ),
    "LangChain": (
        [
            {"type": "human", "data": {"content": "Hi", "type": "human", "name": None, "id": None}},
            {
                "type": "ai",
                "content": [TEXT, TOOL_USE],
                "tool_calls": [{"name": "add", "args": {"a": 1}, "id": "c1"}],
            },
            {"type": "tool", "data": {"content": "42", "tool_call_id": "c1", "status": "error", "name": "add"}},
        ],
        [
            {"role": "user", "content": "Hi"},
            {**CALLED, "content": "Let me see."},
            RESULT | {"name": "add", "is_error": True},
        ],
    ),
    "pydantic-ai": (
        [
            {
                "kind": "request",
                "instructions": "Be kind.",
                "metadata": {"user": 7},
                "parts": [
                    {"part_kind": "system-prompt", "content": "You add."},
                    {"part_kind": "user-prompt", "content": ["Hi", "there"], "timestamp": "2026-04-01T12:00:00Z"},
                ],
            },
            {"kind": "response", "parts": [{"part_kind": "thinking", "content": "hm"}, PAI_CALL]},
            {"kind": "request", "parts": [PAI_RETURN]},
        ],
        [
            {"role": "system", "content": "You add.", "metadata": {"user": 7}},
            {"role": "user", "content": "Hi\nthere", "metadata": {"user": 7}, "timestamp": "2026-04-01T12:00:00Z"},
            {**CALLED, "reasoning": ["hm"]},
            RESULT | {"name": "add"},
        ],
    ),
    "LlamaIndex": (
        [
            {"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "Hi"}]},
            {
                "role": "assistant",
                "blocks": [
                    {"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "add", "tool_kwargs": {"a": 1}}
                ],
            },
            {
                "role": "tool",
                "additional_kwargs": {"tool_call_id": "c1"},
                "blocks": [{"block_type": "text", "text": "42"}],
            },
        ],
        [{"role": "user", "content": "Hi"}, CALLED, RESULT],
    ),
}


@pytest.mark.parametrize(("rows", "wanted"), CASES.values(), ids=CASES.keys())
def test_messages_of_frameworks_become_chat_messages(rows, wanted):
    assert said(*rows) == (rows if wanted is None else wanted)


def test_tools_that_the_provider_runs_have_a_result():
    call, result = said(HOSTED)

    assert call["tool_calls"][0]["function"]["name"] == "web_search"
    assert result == {"role": "tool", "content": "completed", "tool_call_id": "ws_1"}


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([REASONING, ANSWER], [[REASONING, ANSWER]]),
        ([{"role": "user", "content": "Hi"}, REASONING, REASONING, ANSWER], [None, [REASONING, REASONING, ANSWER]]),
        ([ANSWER, REASONING], [[ANSWER, REASONING]]),
        ([REASONING], [[REASONING]]),
        ([REASONING, {"role": "assistant", "content": "Hi"}], [[REASONING, {"role": "assistant", "content": "Hi"}]]),
        ([{"role": "user", "content": [TOOL_RESULT, TEXT]}, REASONING], "split"),
    ],
)
def test_reasoning_is_kept_with_an_answer_and_originals_stay_in_order(rows, wanted):
    found = [message.get(ITEMS) for _, message in chat_messages(rows)]

    assert found == ([[rows[0]], [REASONING]] if wanted == "split" else wanted)


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({**FUNCTION_CALL, "call_id": 5}, "call_id"),
        ({**FUNCTION_CALL, "name": ""}, "name"),
        ({"type": "function_call_output", "call_id": "c1"}, "output"),
        ({"type": "mesage", "content": "Hi"}, "type"),
        ({"type": "message", "role": "user", "content": 5}, "content"),
        ({"role": "assistant", "content": [{**TOOL_USE, "id": None}]}, "content[0].id"),
        ({"role": "user", "content": [TOOL_RESULT, "Hi"]}, "content[1]"),
        ({"type": "ai", "data": {"content": "", "tool_calls": [{"id": "c1"}]}}, "data.tool_calls[0].name"),
        ({"type": "tool", "content": "42"}, "tool_call_id"),
        ({"type": "robot", "data": {"content": "Hi"}}, "type"),
        ({"type": "human", "data": "Hi"}, "data"),
        ({"kind": "request", "parts": [{"part_kind": "user-prompt"}]}, "parts[0].content"),
        ({"kind": "response", "parts": [{"part_kind": "song"}]}, "parts[0].part_kind"),
        ({"kind": "response", "parts": None}, "parts"),
        ({"role": "tool", "blocks": []}, "additional_kwargs.tool_call_id"),
        ({"role": "user", "content": "Hi", ITEMS: []}, ITEMS),
    ],
)
def test_malformed_items_are_named(row, field):
    with pytest.raises(BadItem) as raised:
        chat_messages([ANSWER, row])

    assert raised.value.details == {"index": 1, "field": field}
