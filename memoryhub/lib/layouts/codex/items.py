"""Convert the items of Codex's rollouts to entries: messages, tool calls and their results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memoryhub.lib.layouts.jsonl import without_binary
from memoryhub.lib.layouts.message_parts import call_ref, hash_of, parts_text, tool_call
from memoryhub.lib.layouts.records import EntryKind, EntryRecord
from memoryhub.lib.validation import BadJSON, decode_json, json_text

INJECTED_STARTS = (
    "# AGENTS.md instructions",
    "<apps_instructions>",
    "<collaboration_mode>",
    "<context_window_reminder>",
    "<environment_context>",
    "<hook_prompt",
    "<model_switch>",
    "<multi_agent_mode>",
    "<permissions instructions>",
    "<personality_spec>",
    "<plugins_instructions>",
    "<recommended_plugins>",
    "<skill>",
    "<skills_instructions>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_action>",
    "<user_instructions>",
    "<user_shell_command>",
)
CALLS = {  # type of an item: the tool, if the item doesn't name it
    "function_call": "",
    "custom_tool_call": "",
    "tool_search_call": "tool_search",
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
    "image_generation_call": "image_generation",
}
RESULTS = ("function_call_output", "custom_tool_call_output", "tool_search_output", "local_shell_call_output")
MESSAGES = ("message", "agent_message")
LEFT_OUT = ("ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "compaction_trigger")
_SAID = ("type", "role", "content", "call_id", "name", "arguments", "input", "action", "output", "tools")
_PASSTHROUGH = "internal_chat_message_metadata_passthrough"
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,6})$", re.MULTILINE)


@dataclass(frozen=True)
class ItemTime:
    moment: datetime | None
    text: str


def item_entry(item: dict[str, Any], name: str, time: ItemTime) -> EntryRecord | None:
    """Return an item as an entry with the id ``name``; None if it isn't a message, a call or a result."""
    kind = item.get("type")
    if kind in MESSAGES:
        return _message(item, name, time)
    if kind in CALLS:
        return _call(item, name, time, CALLS[kind])
    return _result(item, name, time) if kind in RESULTS else None


def item_hash(item: dict[str, Any]) -> str:
    """Return a hash of what an item says, which is the same in a fork that repeats it."""
    return hash_of({key: value for key, value in item.items() if key in _SAID})


def _extra(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item's other fields, without the program's notes on each part."""
    rest = {key: value for key, value in item.items() if key not in (*_SAID, "result") and value is not None}
    notes = rest.pop(_PASSTHROUGH, None)
    if isinstance(notes, dict) and notes.get("turn_id"):
        rest["turn_id"] = notes["turn_id"]
    if rest.get("status") == "completed":
        del rest["status"]
    return dict(without_binary(rest))


def _message(item: dict[str, Any], name: str, time: ItemTime) -> EntryRecord:
    role = item.get("role")
    role = role if isinstance(role, str) and 0 < len(role) <= 32 else "assistant"
    text = parts_text(item.get("content"))
    injected = role not in ("user", "assistant") or item["type"] != "message"
    injected = injected or (role == "user" and _is_injected(item))
    return _entry("context" if injected else "message", role, text, name, time, item, is_injected=injected)


def _is_injected(item: dict[str, Any]) -> bool:
    """Return whether the program wrote all parts of a user's message."""
    content, notes = item.get("content"), item.get(_PASSTHROUGH)
    texts = [parts_text(part) for part in content] if isinstance(content, list) else [parts_text(content)]
    kinds = notes.get("content_item_kinds") if isinstance(notes, dict) else None
    if isinstance(kinds, list) and kinds and all(isinstance(kind, str) and "." in kind for kind in kinds):
        return not any(kind.startswith("user.") for kind in kinds)
    return bool(texts) and all(text.lstrip().startswith(INJECTED_STARTS) for text in texts)


def _call(item: dict[str, Any], name: str, time: ItemTime, default: str) -> EntryRecord:
    arguments = item.get("arguments", item.get("action"))
    if item["type"] == "custom_tool_call":
        arguments = {"input": item.get("input")}
    if isinstance(item.get("result"), str):
        item = item | {"image": without_binary({"type": "image", "mimeType": "image/png", "data": item["result"]})}
    tool = item.get("name") or default
    call_id = item.get("call_id") or item.get("id") or name
    entry = _entry("tool_call", "assistant", "", name, time, item)
    entry.tool_calls.append(tool_call(call_id, tool, arguments))
    return entry


def _result(item: dict[str, Any], name: str, time: ItemTime) -> EntryRecord:
    output = item.get("output", item.get("tools"))
    text, about = _output(output)
    match = _EXIT.search(text[:2000])
    failed = about.pop("is_error", False) or (match is not None and match.group(1) != "0")
    entry = _entry("tool_result", "tool", text, name, time, item, call_ref(item.get("call_id")))
    entry.extra.update(about | ({"is_error": True} if failed else {}))
    return entry


def _output(output: Any) -> tuple[str, dict[str, Any]]:
    """Return the text of a result and its other fields. Older versions write JSON text with an exit code."""
    if isinstance(output, str) and output.startswith('{"output"'):
        try:
            value = decode_json(output).value
        except BadJSON:
            return output, {}
        metadata = value.get("metadata") if isinstance(value, dict) else None
        if isinstance(value, dict) and isinstance(value.get("output"), str) and isinstance(metadata, dict):
            failed = metadata.get("exit_code", 0) != 0
            return value["output"], {"metadata": without_binary(metadata)} | ({"is_error": True} if failed else {})
    if isinstance(output, dict):
        failed = output.get("success") is False
        text = parts_text(output.get("content", output.get("content_items")))
        return text, {"is_error": True} if failed else {}
    if isinstance(output, str | list):
        return parts_text(output), {}
    return "" if output is None else json_text(output), {}


def _entry(
    kind: EntryKind,
    role: str,
    text: str,
    name: str,
    time: ItemTime,
    item: dict[str, Any],
    call_id: str = "",
    *,
    is_injected: bool = False,
) -> EntryRecord:
    return EntryRecord(
        kind=kind,
        role=role,
        content=text,
        source_hash=item_hash(item),
        source_id=name,
        tool_call_id=call_id,
        occurred_at=time.moment,
        occurred_at_text=time.text,
        is_injected=is_injected,
        extra=_extra(item),
    )


def reasoning_texts(item: dict[str, Any]) -> list[str]:
    """Return the readable parts of reasoning; the encrypted ones are left out."""
    lists = [item.get(name) for name in ("summary", "content")]
    parts = [part for parts in lists if isinstance(parts, list) for part in parts if isinstance(part, dict)]
    return [part["text"] for part in parts if isinstance(part.get("text"), str) and part["text"]]


def event_items(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an event's part of the conversation as items, for files that contain only events."""
    kind = event.get("type")
    if kind == "item_completed" and isinstance(event.get("item"), dict):
        event = event["item"]
        kind = event.get("type")
    match kind:
        case "user_message" | "UserMessage":
            return [{"type": "message", "role": "user", "content": event.get("message", event.get("content"))}]
        case "agent_message" | "AgentMessage":
            return [{"type": "message", "role": "assistant", "content": event.get("message", event.get("content"))}]
        case "exec_command_end" | "CommandExecution":
            call_id = event.get("call_id", event.get("id"))
            call = {"type": "local_shell_call", "call_id": call_id, "action": {"command": event.get("command")}}
            text = event.get("aggregated_output", event.get("stdout"))
            output = {"content": text, "success": event.get("exit_code") in (0, None)}
            return [call, {"type": "local_shell_call_output", "call_id": call_id, "output": output}]
    return []
