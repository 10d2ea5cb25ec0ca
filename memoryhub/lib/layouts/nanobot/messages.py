"""What nanobot's program adds to a session: marks of compactions, hidden messages, context appended to messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from memoryhub.lib.layouts.entries import read_message
from memoryhub.lib.layouts.records import EntryRecord

CONTINUATION = "Continue the active task from the working-memory checkpoint above."
HIDDEN = ("_hidden_history", "_automation_turn")
CONTEXT = "_runtime_context"


def is_compaction(value: Any) -> bool:
    """Tell whether a record marks the end of what a summary replaces. The program inserts it between messages."""
    return isinstance(value, dict) and value.get("_hidden_history") is True and value.get("content") == CONTINUATION


def read_entry(value: Any, zone: tzinfo) -> tuple[EntryRecord, list[str]]:
    """Return a message as an entry, and descriptions of the repairs. Raises NoEntry."""
    entry, repairs = read_message(value, zone)
    if _is_hidden(value):
        kind = "context" if entry.kind == "message" else entry.kind
        return replace(entry, kind=kind, is_injected=True), repairs
    return _without_context(entry, value, zone), repairs


def _is_hidden(message: Mapping[str, Any]) -> bool:
    marks = [message.get(name) for name in HIDDEN]
    return any(mark is True or isinstance(mark, dict) for mark in marks) or message.get("_cron_turn") is True


def _without_context(entry: EntryRecord, message: Mapping[str, Any], zone: tzinfo) -> EntryRecord:
    """Leave out the end of a message that the program appended. Exports contain it."""
    content, mark = message.get("content"), message.get(CONTEXT)
    said = _said(content, mark) if isinstance(mark, dict) and mark.get("version") == 1 else content
    if said == content:
        return entry
    shown, _ = read_message({"role": entry.role, "content": said}, zone)
    return replace(entry, content=shown.content, extra={**entry.extra, "content": content})


def _said(content: Any, mark: Mapping[str, Any]) -> Any:
    suffix, blocks = mark.get("suffix"), mark.get("blocks")
    if isinstance(content, str) and isinstance(suffix, str) and suffix:
        return "" if content == suffix else content.removesuffix(f"\n\n{suffix}")
    if isinstance(content, list) and isinstance(blocks, list) and blocks and content[-len(blocks) :] == blocks:
        return content[: -len(blocks)]
    return content
