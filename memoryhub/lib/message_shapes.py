"""Convert the messages of agent frameworks to OpenAI chat messages. Pure.

Reads the items of OpenAI's Responses API, messages of Anthropic's API whose content has tool or thinking blocks, and
the message dicts of LangChain, pydantic-ai and LlamaIndex. The first message of an item has the original in the field
``ITEMS``, so that a framework gets back what it sent; that field of its other messages is empty. The field
``reasoning`` has the texts of private reasoning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from memoryhub.lib.errors import Invalid
from memoryhub.lib.layouts.codex.items import reasoning_texts
from memoryhub.lib.layouts.entries import MAX_ID_LENGTH
from memoryhub.lib.layouts.jsonl import placeholder, without_binary
from memoryhub.lib.layouts.message_parts import TEXT_TYPES, parts_text, tool_call
from memoryhub.lib.validation import json_text

Message = dict[str, Any]
Reader = Callable[[Message], list[Message]]
ITEMS = "framework_items"
LANGCHAIN_ROLES = {"human": "user", "ai": "assistant", "system": "system", "developer": "developer", "tool": "tool"}
LLAMA_ROLES = {"chatbot": "assistant", "model": "assistant"}
ANTHROPIC_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
THINKING = ("thinking", "redacted_thinking")
NAMED_CALLS = ("function_call", "custom_tool_call", "mcp_call")
HOSTED_CALLS = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")
SILENT_ITEMS = (
    "additional_tools",
    "compaction",
    "compaction_trigger",
    "configuration_update",
    "item_reference",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_list_tools",
    "program",
    "program_output",
)
SILENT_PARTS = ("compaction", "instruction")  # and kinds that begin with instruction- or end in -delta
CARRIED = ("metadata", "timestamp")


class BadItem(Invalid):
    """A malformed item. ``details["field"]``: the path of the field; the message goes on from it."""

    code = "bad_entry"


def chat_messages(rows: Sequence[Message]) -> list[tuple[int, Message]]:
    """Return the chat messages of a batch, each with the index of the row that it is from.

    Chat messages are returned unchanged. An item without a message, such as reasoning, is kept with the next message
    if that is the assistant's, or else with the one before. Raises BadItem, whose details have the ``index``.
    """
    read: list[tuple[int, Message]] = []
    for index, row in enumerate(rows):
        for message in _read(row, index):
            joins = read and is_silent(read[-1][1]) and message.get("role") == "assistant"
            read.append((index, _joined(read.pop()[1], message, message) if joins else message))
    found: list[tuple[int, Message]] = []
    for index, message in read:
        if found and is_silent(message):
            place, before = found.pop()
            found.append((place, _joined(before, message, before)))
        else:
            found.append((index, message))
    return found


def is_silent(message: Message) -> bool:
    """Return whether a message of a framework contains nothing that was said."""
    is_empty = not message.get("content") and not message.get("tool_calls")
    return ITEMS in message and message.get("role") == "assistant" and is_empty


def _joined(first: Message, second: Message, base: Message) -> Message:
    """Return ``base``, which is one of two messages, with the reasoning and the originals of both."""
    items = [item for message in (first, second) for item in message.get(ITEMS, [message])]
    reasoning = [text for message in (first, second) for text in message.get("reasoning", [])]
    return base | {ITEMS: items} | ({"reasoning": reasoning} if reasoning else {})


def _read(row: Message, index: int) -> list[Message]:
    try:
        if ITEMS in row:
            raise BadItem("is reserved", field=ITEMS)
        reader = _reader_of(row)
        if reader is None:
            return [row]
        messages = reader(row) or [_message("assistant")]
    except BadItem as error:
        error.details["index"] = index
        raise
    names = (*CARRIED, "name") if "role" in row else CARRIED
    carried = {name: row[name] for name in names if row.get(name)}
    return [carried | message | {ITEMS: [] if number else [row]} for number, message in enumerate(messages)]


def _reader_of(row: Message) -> Reader | None:
    """Return the reader of a framework's message, None for a chat message."""
    kind = row.get("type")
    if row.get("kind") in ("request", "response"):
        return _pydantic_ai
    if "kind" in row:
        return None
    if "role" not in row:
        is_langchain = _langchain_type(kind) in LANGCHAIN_ROLES or "data" in row
        return (_langchain if is_langchain else _responses_item) if isinstance(kind, str) else None
    if isinstance(row.get("blocks"), list) and "content" not in row:
        return _llama_index
    content = row.get("content")
    kinds = (
        {str(part.get("type")) for part in content if isinstance(part, dict)} if isinstance(content, list) else set()
    )
    if any(kind in (*ANTHROPIC_CALLS, *THINKING) or kind.endswith("tool_result") for kind in kinds):
        return _anthropic
    is_responses = kind == "message" or any(
        kind.startswith(("input_", "output_")) for kind in kinds - {"input_audio"}
    )
    return _responses_message if is_responses else None


def _message(role: str, content: Any = "", **fields: Any) -> Message:
    return {"role": role, "content": content, **{name: value for name, value in fields.items() if value}}


def _content(parts: Any) -> Any:
    """Return the content of a message: its text, or its parts if some aren't text, such as images."""
    if not isinstance(parts, list):
        return parts_text(parts)
    is_text = all(isinstance(part, str) or (isinstance(part, dict) and _is_text(part)) for part in parts)
    return parts_text(parts) if is_text else parts


def _is_text(part: Message) -> bool:
    return isinstance(part.get("text"), str) and part.get("type") in (*TEXT_TYPES, None)


def _required(source: Message, name: str, place: str = "") -> str:
    """Return a name or id. Raises BadItem."""
    value = source.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID_LENGTH:
        raise BadItem(f"must be a text of 1 to {MAX_ID_LENGTH} characters", field=f"{place}{name}")
    return value


def _present(source: Message, name: str, place: str = "") -> Any:
    if source.get(name) is None:
        raise BadItem("is missing", field=f"{place}{name}")
    return source[name]


def _objects(source: Message, name: str) -> Iterator[tuple[str, Message]]:
    """Yield the place and value of each object in a list. Raises BadItem."""
    values = source.get(name)
    if not isinstance(values, list):
        raise BadItem("must be a list", field=name)
    for number, value in enumerate(values):
        if not isinstance(value, dict):
            raise BadItem("must be an object", field=f"{name}[{number}]")
        yield f"{name}[{number}].", value


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(without_binary(value))


def _responses_message(item: Message) -> list[Message]:
    refusals = {"type": "text"}
    content = item.get("content")
    if isinstance(content, list):
        content = [refusals | {"text": part["refusal"]} if _is_refusal(part) else part for part in content]
    elif not isinstance(content, str):
        raise BadItem("must be a text or a list of parts", field="content")
    return [_message(_required(item, "role"), _content(content))]


def _is_refusal(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("refusal"), str)


def _responses_item(item: Message) -> list[Message]:
    kind = item["type"]
    if kind == "message":
        return _responses_message(item)
    if kind == "reasoning":
        return [_message("assistant", reasoning=reasoning_texts(item))]
    if kind in SILENT_ITEMS:
        return []
    if kind.endswith("_output"):
        call_id = _required(item, "call_id" if "call_id" in item or "id" not in item else "id")
        output = item["tools"] if "tools" in item else _present(item, "output")
        return [_message("tool", parts_text(output), tool_call_id=call_id)]
    if kind.endswith("_call"):
        return _responses_call(item, kind)
    raise BadItem(f"is unknown: {kind[:100]!r}", field="type")


def _responses_call(item: Message, kind: str) -> list[Message]:
    name = _required(item, "name") if kind in NAMED_CALLS else kind.removesuffix("_call")
    call_id = _required(item, "id" if kind in HOSTED_CALLS else "call_id")
    arguments = _present(item, "arguments") if kind == "function_call" else _arguments(item)
    call = _message("assistant", tool_calls=[tool_call(call_id, name, arguments)])
    if kind not in HOSTED_CALLS:
        return [call]
    result = next((item[key] for key in ("output", "outputs", "results", "error") if item.get(key)), None)
    if kind == "image_generation_call" and isinstance(item.get("result"), str):
        result = placeholder("image", item["result"])
    text = _value_text(item.get("status", "") if result is None else result)
    return [call, _message("tool", text, tool_call_id=call_id, is_error=bool(item.get("error")))]


def _arguments(item: Message) -> Any:
    if item["type"] == "custom_tool_call":
        return {"input": item.get("input")}
    names = ("arguments", "action", "actions", "operation", "code", "queries")
    return next((item[name] for name in names if item.get(name) is not None), None)


def _anthropic(row: Message) -> list[Message]:
    role = _required(row, "role")
    blocks = list(_objects(row, "content"))
    results = [_anthropic_result(block, place) for place, block in blocks if _is_result(block)]
    if role != "assistant":
        return results + _said(role, [block for _, block in blocks if not _is_result(block)])
    calls = [
        tool_call(_required(block, "id", place), _required(block, "name", place), block.get("input"))
        for place, block in blocks
        if block.get("type") in ANTHROPIC_CALLS
    ]
    thinking = [block["thinking"] for _, block in blocks if isinstance(block.get("thinking"), str)]
    other = (*ANTHROPIC_CALLS, *THINKING)
    said = [block for _, block in blocks if block.get("type") not in other and not _is_result(block)]
    return [_message("assistant", _content(said), tool_calls=calls, reasoning=thinking), *results]


def _said(role: str, parts: list[Any]) -> list[Message]:
    return [_message(role, _content(parts))] if parts else []


def _is_result(block: Message) -> bool:
    return str(block.get("type")).endswith("tool_result")


def _anthropic_result(block: Message, place: str) -> Message:
    call_id = _required(block, "tool_use_id", place)
    return _message(
        "tool", parts_text(block.get("content")), tool_call_id=call_id, is_error=block.get("is_error") is True
    )


def _langchain(row: Message) -> list[Message]:
    data, place = (row["data"], "data.") if "data" in row else (row, "")
    if not isinstance(data, dict):
        raise BadItem("must be an object", field="data")
    role = LANGCHAIN_ROLES.get(_langchain_type(row["type"]))
    if role is None:
        raise BadItem(f"is unknown: use one of {', '.join(LANGCHAIN_ROLES)}", field="type")
    content = _present(data, "content", place)
    fields = {name: data[name] for name in (*CARRIED, "name") if data.get(name)}
    if role == "tool":
        call_id = _required(data, "tool_call_id", place)
        is_error = data.get("status") == "error"
        return [_message(role, parts_text(content), **fields, tool_call_id=call_id, is_error=is_error)]
    parts = content if isinstance(content, list) else []
    hidden = (*ANTHROPIC_CALLS, *THINKING, "reasoning", "tool_call", "function_call")
    said = [part for part in parts if not (isinstance(part, dict) and part.get("type") in hidden)]
    reasoning = [text for part in parts if isinstance(part, dict) for text in _reasoning_of(part)]
    calls = list(_langchain_calls(data, place)) if role == "assistant" else []
    return [_message(role, _content(said if parts else content), **fields, tool_calls=calls, reasoning=reasoning)]


def _langchain_type(kind: Any) -> str:
    """Return the type of a message; that of a streamed one is for example ``AIMessageChunk``."""
    return str(kind).removesuffix("MessageChunk").lower()


def _reasoning_of(part: Message) -> Iterable[str]:
    return [part[name] for name in ("thinking", "reasoning") if isinstance(part.get(name), str)]


def _langchain_calls(data: Message, place: str) -> Iterator[Any]:
    if not data.get("tool_calls"):
        return
    for where, call in _objects(data, "tool_calls"):
        at = f"{place}{where}"
        yield tool_call(_required(call, "id", at), _required(call, "name", at), call.get("args"))


def _pydantic_ai(row: Message) -> list[Message]:
    parts = list(_objects(row, "parts"))
    said = [(place, part) for place, part in parts if not _is_silent_part(part)]
    if row["kind"] == "request":
        return [_request_part(part, place) for place, part in said]
    message = _message("assistant")
    texts: list[str] = []
    found: dict[str, list[Any]] = {"tool_calls": [], "reasoning": []}
    results: list[Message] = []
    for place, part in said:
        match part.get("part_kind"):
            case "text" | "speech" | "file":
                texts.append(_value_text(part.get("content") or part.get("transcript") or ""))
            case "thinking":
                found["reasoning"] += [part["content"]] if part.get("content") else []
            case "tool-call" | "builtin-tool-call":
                call = _required(part, "tool_call_id", place), _required(part, "tool_name", place), part.get("args")
                found["tool_calls"].append(tool_call(*call))
            case "builtin-tool-return":
                results.append(_pydantic_result(part, place))
            case _:
                raise BadItem("is unknown in a response", field=f"{place}part_kind")
    message |= {"content": "\n".join(texts)} | {name: values for name, values in found.items() if values}
    return [message, *results]


def _is_silent_part(part: Message) -> bool:
    kind = str(part.get("part_kind"))
    return kind in SILENT_PARTS or kind.startswith("instruction-") or kind.endswith("-delta")


def _request_part(part: Message, place: str) -> Message:
    fields = {"timestamp": part.get("timestamp")}
    match part.get("part_kind"):
        case "system-prompt":
            return _message("system", _value_text(part.get("content")), **fields)
        case "user-prompt" | "retry-feedback":
            return _message("user", parts_text(_present(part, "content", place)), **fields)
        case "speech":
            return _message("user", part.get("transcript") or "[audio]", **fields)
        case "tool-return" | "builtin-tool-return":
            return _pydantic_result(part, place)
        case "retry-prompt":
            if not part.get("tool_name"):
                return _message("user", _value_text(part.get("content")), **fields)
            return _pydantic_result(part, place) | {"is_error": True}
    raise BadItem("is unknown in a request", field=f"{place}part_kind")


def _pydantic_result(part: Message, place: str) -> Message:
    call_id = _required(part, "tool_call_id", place)
    is_error = part.get("outcome") in ("failed", "denied")
    fields = {"timestamp": part.get("timestamp"), "name": part.get("tool_name"), "is_error": is_error}
    return _message("tool", _value_text(part.get("content")), tool_call_id=call_id, **fields)


def _llama_index(row: Message) -> list[Message]:
    role = _required(row, "role")
    role = LLAMA_ROLES.get(role, role)
    more = row.get("additional_kwargs")
    more = more if isinstance(more, dict) else {}
    blocks = list(_objects(row, "blocks"))
    text = "\n".join(
        _block_text(block) for _, block in blocks if block.get("block_type") not in ("tool_call", "thinking")
    )
    if role == "tool":
        return [_message(role, text, tool_call_id=_required(more, "tool_call_id", "additional_kwargs."))]
    calls = [
        tool_call(block.get("tool_call_id"), _required(block, "tool_name", place), block.get("tool_kwargs"))
        for place, block in blocks
        if block.get("block_type") == "tool_call"
    ]
    thinking = [
        block["content"] for _, block in blocks if block.get("block_type") == "thinking" and block.get("content")
    ]
    return [_message(role, text, tool_calls=calls or more.get("tool_calls"), reasoning=thinking)]


def _block_text(block: Message) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else json_text(without_binary(block))
