"""A context as the body of a request to a provider's API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memoryhub.conversations.context import Context


def openai_body(context: Context) -> dict[str, Any]:
    """Return the messages for OpenAI's chat completions, and for servers with the same API. They refuse metadata."""
    return {
        "messages": [
            {name: value for name, value in message.items() if name != "metadata"} for message in context.messages
        ]
    }


def anthropic_body(context: Context) -> dict[str, Any]:
    """Return system text and messages for Anthropic's Messages API.

    Tool calls become ``tool_use`` blocks, results ``tool_result`` blocks of a user message. Consecutive messages
    of the same role are joined, because roles must alternate.
    """
    system = [_text(message["content"]) for message in context.messages if message["role"] in ("system", "developer")]
    messages: list[dict[str, Any]] = []
    for message in context.messages:
        role, blocks = _blocks(message)
        if not blocks or message["role"] in ("system", "developer"):
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    return {"system": "\n\n".join(system), "messages": messages} if system else {"messages": messages}


def _blocks(message: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    content = message["content"]
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": message.get("tool_call_id", ""), "content": _text(content)}
        return "user", [result]
    blocks = [{"type": "text", "text": _text(content)}] if content else []
    for call in message.get("tool_calls", ()):
        function = call["function"]
        arguments = _arguments(function["arguments"])
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments})
    return "assistant" if message["role"] == "assistant" else "user", blocks


def _text(content: str | Sequence[Any]) -> str:
    """Return the text of a message; its other parts, such as images, as JSON."""
    if isinstance(content, str):
        return content
    texts = [
        part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else json.dumps(part)
        for part in content
    ]
    return "\n".join(texts)


def _arguments(text: str) -> Any:
    """Return a call's arguments as an object; text that isn't one is kept under a name of its own."""
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"arguments": text}
