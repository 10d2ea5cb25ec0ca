"""Convert content parts of the Anthropic and OpenAI APIs to text, without their base64 data."""

from __future__ import annotations

import hashlib
from typing import Any

from memoryhub.lib.layouts.entries import MAX_ID_LENGTH
from memoryhub.lib.layouts.jsonl import placeholder, without_binary
from memoryhub.lib.layouts.records import ToolCall
from memoryhub.lib.validation import canonical_json, json_text

MAX_OWN_ID = MAX_ID_LENGTH - 100  # ids of entries get a suffix, those of sessions a prefix
TEXT_TYPES = ("text", "input_text", "output_text", "summary_text", "reasoning_text", "Text")
KINDS = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "document": "document",
    "input_file": "file",
    "audio": "audio",
}


def own_id(value: Any) -> str:
    """Return the id of a record, "" if it can't be used."""
    return value if isinstance(value, str) and len(value) <= MAX_OWN_ID else ""


def hash_of(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def parts_text(content: Any) -> str:
    """Return the text of a message's content: a text, or a list of parts."""
    if content is None:
        return ""
    return "\n".join(part_text(part) for part in content) if isinstance(content, list) else part_text(content)


def part_text(part: Any) -> str:
    """Return a content part as text: data as a placeholder such as ``[image, 12,345 bytes]``, others as JSON."""
    if isinstance(part, str):
        return str(without_binary(part))
    if not isinstance(part, dict):
        return "" if part is None else json_text(part)
    text, kind = part.get("text"), str(part.get("type"))
    if isinstance(text, str) and kind in (*TEXT_TYPES, "None"):
        return text
    return _data_text(part, KINDS[kind]) if kind in KINDS else json_text(without_binary(part))


def _data_text(part: dict[str, Any], kind: str) -> str:
    source = part.get("source")
    if isinstance(source, dict) and isinstance(source.get("data"), str):
        if source.get("type") == "text":
            return str(source["data"])
        return _sized(kind, source["data"])
    if isinstance(part.get("data"), str):
        return _sized(kind, part["data"].rpartition(",")[2])
    place = next((part[name] for name in ("image_url", "file_data", "url") if name in part), None)
    place = place.get("url") if isinstance(place, dict) else place
    if isinstance(place, str):
        return _sized(kind, place.partition(",")[2]) if place.startswith("data:") else f"[{kind}, {place[:200]}]"
    return json_text(without_binary(part))


def _sized(kind: str, encoded: str) -> str:
    size = placeholder("", encoded).rpartition(", ")[2]
    return f"[{kind}, {size}"


def tool_call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    """Return a tool call in the OpenAI shape; arguments that aren't text become JSON."""
    arguments = without_binary(arguments)
    text = arguments if isinstance(arguments, str) else json_text({} if arguments is None else arguments)
    label = name if isinstance(name, str) else json_text(name)
    return {
        "id": call_ref(call_id),
        "type": "function",
        "function": {"name": label[:MAX_ID_LENGTH], "arguments": text},
    }


def call_ref(value: Any) -> str:
    """Return the id of a tool call, "" if it can't be used."""
    return value if isinstance(value, str) and len(value) <= MAX_ID_LENGTH else ""
