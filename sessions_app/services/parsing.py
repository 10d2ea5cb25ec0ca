"""Validate entries sent by agents and people, and convert them to records."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from memoryhub.lib.errors import Invalid
from memoryhub.lib.layouts.entries import NoEntry, read_message
from memoryhub.lib.layouts.records import EntryKind, EntryRecord
from memoryhub.lib.message_shapes import ITEMS, BadItem, chat_messages, is_silent
from memoryhub.lib.validation import canonical_json, json_text

KINDS: tuple[EntryKind, ...] = get_args(EntryKind)
ROLES = ("user", "assistant", "system", "tool", "developer")
DEFAULT_ROLES = {"tool_call": "assistant", "tool_result": "system", "context": "system", "summary": "system"}
MAX_BATCH = 1000
MAX_CONTENT = 2 * 2**20  # characters of one entry


def read_batch(rows: Any, *, now: datetime) -> list[EntryRecord]:
    """Parse a batch of 1 to 1,000 entries into records. Raises Invalid for the first invalid one.

    A row is an OpenAI chat message (``role``, ``content``, ``tool_calls``, ``tool_call_id``, ``name``) with an
    optional ``timestamp`` (ISO 8601, default now) and ``kind``. With a kind, ``role`` is optional, and a tool call
    can be ``name`` and ``arguments`` (as in AgTerm's addToolCall). Unknown fields are kept. Messages of agent
    frameworks become one or more entries (see ``memoryhub.lib.message_shapes``).
    """
    if not isinstance(rows, list) or not rows:
        raise Invalid("Send a list of at least one entry.", code="bad_entry", index=0, field="entries")
    _check_count(len(rows))
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            raise Invalid(f"entries[{index}] is not an object.", code="bad_entry", index=index, field="")
    try:
        messages = chat_messages(rows)
    except BadItem as error:
        place, field = error.details["index"], error.details["field"]
        text = f"entries[{place}].{field} {error.message}."
        raise Invalid(text, code="bad_entry", index=place, field=field) from error
    _check_count(len(messages))
    return [_read(message, index, now) for index, message in messages]


def _check_count(count: int) -> None:
    if count > MAX_BATCH:
        raise Invalid(
            f"A batch can have up to {MAX_BATCH:,} entries; split these {count:,}.", code="bad_entry", field="entries"
        )


def batch_hash(records: Sequence[EntryRecord]) -> str:
    """Return a hash that identifies a batch by its rows as sent."""
    return hashlib.sha256("".join(record.source_hash for record in records).encode()).hexdigest()


def _read(row: dict[str, Any], index: int, now: datetime) -> EntryRecord:
    message = _message(row, index)
    try:
        read, repairs = read_message(message, UTC)
    except NoEntry as error:
        raise Invalid(
            f"entries[{index}] {error.message}: {_roles()}.", code="bad_entry", index=index, field="role"
        ) from error
    if repairs:
        raise Invalid(f"entries[{index}]: {repairs[0]}.", code="bad_entry", index=index, field="")
    is_injected = is_silent(row)
    if not is_injected:
        _check(read, index)
    _check_size(read, index)
    return EntryRecord(
        kind="context" if is_injected else row.get("kind") or read.kind,
        role=read.role,
        content=read.content,
        source_hash=hashlib.sha256(canonical_json(row).encode()).hexdigest(),
        name=read.name,
        tool_call_id=read.tool_call_id,
        tool_calls=read.tool_calls,
        occurred_at=read.occurred_at or now,
        occurred_at_text=read.occurred_at_text,
        source_id=read.source_id,
        is_injected=is_injected,
        extra=read.extra,
        source_fields=list(message),
    )


def _message(row: dict[str, Any], index: int) -> dict[str, Any]:
    """Convert a row to a chat message: drop its kind, add the role that the kind implies."""
    message = {name: value for name, value in row.items() if name != "kind"}
    kind = row.get("kind")
    if kind is None:
        return message
    if kind not in KINDS:
        raise Invalid(
            f"entries[{index}] has no kind {kind!r}: use {', '.join(KINDS)}.",
            code="bad_entry",
            index=index,
            field="kind",
        )
    if kind == "tool_call" and "arguments" in message and "tool_calls" not in message:
        arguments = message.pop("arguments")
        text = arguments if isinstance(arguments, str) else json_text(arguments)
        message.setdefault("content", f"{message.get('name', 'tool')} {text}")
    role = "tool" if kind == "tool_result" and message.get("tool_call_id") else DEFAULT_ROLES.get(kind)
    return message if "role" in message or role is None else {"role": role, **message}


def _check(read: EntryRecord, index: int) -> None:
    if read.role not in ROLES:
        raise Invalid(
            f"entries[{index}] has the role {read.role!r}: {_roles()}.", code="bad_entry", index=index, field="role"
        )
    if read.role == "tool" and not read.tool_call_id:
        raise Invalid(
            f"entries[{index}] is a tool result: name its call in tool_call_id.",
            code="bad_entry",
            index=index,
            field="tool_call_id",
        )
    if not read.content and not read.tool_calls and read.role != "tool":
        raise Invalid(f"entries[{index}] is empty: give it content.", code="bad_entry", index=index, field="content")


def _check_size(read: EntryRecord, index: int) -> None:
    original = read.extra.get(ITEMS)
    if len(read.content) > MAX_CONTENT or (original and len(json_text(original)) > MAX_CONTENT):
        raise Invalid(
            f"entries[{index}] is longer than {MAX_CONTENT:,} characters.",
            code="bad_entry",
            index=index,
            field="content",
        )


def _roles() -> str:
    return f"use one of {', '.join(ROLES)}"
