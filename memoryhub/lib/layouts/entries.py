"""Convert messages of nanobot and Grip to entry records."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any

from memoryhub.lib.errors import Invalid
from memoryhub.lib.json_numbers import with_spellings
from memoryhub.lib.layouts.records import EntryKind, EntryRecord, ToolCall
from memoryhub.lib.layouts.times import read_moment
from memoryhub.lib.validation import BadJSON, canonical_json, json_text

MAX_ID_LENGTH = 512
ROLE_LENGTH = 32
INVALID_TIME = "the timestamp is invalid; its text is kept"
KNOWN = ("role", "content", "tool_calls", "tool_call_id", "name", "timestamp")


class NoEntry(Invalid):
    """An invalid record; the message says why."""

    code = "no_entry"


def rejection_reason(error: UnicodeDecodeError | BadJSON | NoEntry) -> str:
    """Return why a line was rejected."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} of the line is not UTF-8"
    if isinstance(error, BadJSON):
        return f"column {error.column}: {error.message}"
    return f"the record {error.message}"


def read_message(raw: Any, zone: tzinfo) -> tuple[EntryRecord, list[str]]:
    """Return a message as an entry, and descriptions of the repairs. Raises NoEntry.

    Fields of an unexpected type are kept in ``extra``; the entry has their JSON text.
    """
    if not isinstance(raw, dict):
        raise NoEntry("is not an object")
    role = raw.get("role")
    if not isinstance(role, str) or not role or len(role) > ROLE_LENGTH:
        raise NoEntry("has no role")
    repairs: list[str] = []
    extra = {key: value for key, value in raw.items() if key not in KNOWN}
    content = _content(raw, extra, repairs)
    calls = _tool_calls(raw, extra, repairs)
    occurred_at, time_text = _time(raw, extra, zone, repairs)
    record = EntryRecord(
        kind=_kind(role, calls),
        role=role,
        content=content,
        source_hash=hashlib.sha256(canonical_json(raw).encode()).hexdigest(),
        name=_text(raw, "name", extra, repairs),
        tool_call_id=_call_id(raw, extra, repairs),
        tool_calls=calls,
        occurred_at=occurred_at,
        occurred_at_text=time_text,
        extra=with_spellings(extra, raw),
        source_fields=list(raw),
    )
    return record, repairs


def _kind(role: str, calls: list[ToolCall]) -> EntryKind:
    if role == "tool":
        return "tool_result"
    return "tool_call" if calls else "message"


def _content(raw: Mapping[str, Any], extra: dict[str, Any], repairs: list[str]) -> str:
    content = raw.get("content")
    if isinstance(content, str):
        return content
    if "content" in raw:
        extra["content"] = content
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(_part_text(part) for part in content)
    repairs.append("the content is not text; its JSON is imported")
    return json_text(content)


def _part_text(part: Any) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    return part if isinstance(part, str) else json_text(part)


def _tool_calls(raw: Mapping[str, Any], extra: dict[str, Any], repairs: list[str]) -> list[ToolCall]:
    calls = raw.get("tool_calls")
    if calls in (None, []):
        if "tool_calls" in raw:
            extra["tool_calls"] = calls
        return []
    parsed = [_tool_call(call) for call in calls] if isinstance(calls, list) else []
    valid = [call for call in parsed if call]
    if not isinstance(calls, list) or len(valid) < len(calls):
        repairs.append("a tool call has an unknown format; it is kept as an extra field")
    if valid != calls:
        extra["tool_calls"] = calls
    return valid


def _tool_call(call: Any) -> ToolCall | None:
    """Parse a tool call in OpenAI's or Grip's format; arguments become JSON text."""
    call_id = _id_text(call.get("id")) if isinstance(call, dict) else None
    if not isinstance(call, dict) or call_id is None:
        return None
    function = call.get("function")
    name, arguments = (
        (function.get("name"), function.get("arguments"))
        if isinstance(function, dict)
        else (call.get("function_name"), call.get("arguments"))
    )
    if not isinstance(name, str):
        return None
    text = arguments if isinstance(arguments, str) else json_text({} if arguments is None else arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def _id_text(value: Any) -> str | None:
    """Return an id as text; some servers number their tool calls. None for other types and overlong ids."""
    text = json_text(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    return text if isinstance(text, str) and len(text) <= MAX_ID_LENGTH else None


def _call_id(raw: Mapping[str, Any], extra: dict[str, Any], repairs: list[str]) -> str:
    value = raw.get("tool_call_id", "")
    text = _id_text(value)
    if text is None or text == value:
        return _text(raw, "tool_call_id", extra, repairs)
    extra["tool_call_id"] = value
    return text


def _text(raw: Mapping[str, Any], name: str, extra: dict[str, Any], repairs: list[str]) -> str:
    value = raw.get(name, "")
    if isinstance(value, str) and len(value) <= MAX_ID_LENGTH:
        return value
    extra[name] = value
    if value is not None:
        repairs.append(f"{name} is not a short text; it is kept as an extra field")
    return ""


def _time(
    raw: Mapping[str, Any], extra: dict[str, Any], zone: tzinfo, repairs: list[str]
) -> tuple[datetime | None, str]:
    text = raw.get("timestamp")
    if text is None:
        if "timestamp" in raw:
            extra["timestamp"] = None
        return None, ""
    occurred_at = read_moment(text, zone)
    if occurred_at is None:
        repairs.append(INVALID_TIME)
    if not isinstance(text, str):
        extra["timestamp"] = text
    return occurred_at, text if isinstance(text, str) else json_text(text)
