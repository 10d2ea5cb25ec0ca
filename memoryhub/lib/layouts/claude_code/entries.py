"""Convert records of Claude Code's transcripts to entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any

from memoryhub.lib.layouts.entries import INVALID_TIME
from memoryhub.lib.layouts.jsonl import without_binary
from memoryhub.lib.layouts.message_parts import call_ref, hash_of, own_id, part_text, parts_text, tool_call
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import REPAIRED, EntryRecord, ToolCall
from memoryhub.lib.layouts.times import read_moment
from memoryhub.lib.validation import json_text

MAX_REPEATED_CHARS = 4000  # of a text in ``toolUseResult``, which repeats results in another form
INJECTED_STARTS = (
    "<local-command-caveat>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<command-name>",
    "<command-message>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "<task-notification>",
    "[Request interrupted by user",
)
ENVIRONMENT = ("cwd", "version", "gitBranch", "userType", "entrypoint", "slug", "permissionMode", "agentId")
_STRUCTURE = {
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "sessionId",
    "timestamp",
    "type",
    "message",
    "attachment",
    "isSidechain",
    "forkedFrom",
}
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")


@dataclass
class Context:
    """What the records of a file have in common: the latest environment, and what was counted."""

    zone: tzinfo
    counts: ProblemCounts
    environment: dict[str, Any] = field(default_factory=dict)
    last_usage: str = ""  # the id of the answer whose usage was kept last

    def own_fields(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record's own fields, and those of its environment that changed since the record before."""
        rest = {
            name: value
            for name, value in record.items()
            if name not in _STRUCTURE and name not in ENVIRONMENT and value not in (None, False)
        }
        for name in ENVIRONMENT:
            if name in record and self.environment.get(name) != record[name]:
                self.environment[name] = rest[name] = record[name]
        if "toolUseResult" in rest:
            rest["toolUseResult"] = self._shortened(without_binary(rest["toolUseResult"]))
        return rest

    def _shortened(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._shortened(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._shortened(item) for item in value]
        if isinstance(value, str) and len(value) > MAX_REPEATED_CHARS:
            self.counts.left_out["long text in toolUseResult"] += 1
            return f"[text, {len(value):,} characters]"
        return value

    def time(self, record: dict[str, Any]) -> tuple[datetime | None, str]:
        text = record.get("timestamp")
        moment = read_moment(text, self.zone)
        if moment is None and text is not None:
            self.counts.add(INVALID_TIME, REPAIRED, "repaired")
        return moment, text if isinstance(text, str) else "" if text is None else json_text(text)


def record_id(record: dict[str, Any]) -> str:
    """Return a record's id, or that of the record in another session of which it is a copy."""
    fork = record.get("forkedFrom")
    original = own_id(fork.get("messageUuid")) if isinstance(fork, dict) else ""
    return original or own_id(record.get("uuid"))


def is_injected(record: dict[str, Any], text: str = "") -> bool:
    """Return whether the program added a record to the conversation."""
    is_marked = record.get("isMeta") is True or record.get("isApiErrorMessage") is True
    return is_marked or text.lstrip().startswith(INJECTED_STARTS)


def user_entries(record: dict[str, Any], context: Context) -> list[EntryRecord]:
    """Return a user record's messages and results of tool calls, in order."""
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else message
    parts = content if isinstance(content, list) else [content]
    base, extra = record_id(record) or hash_of(content)[:32], context.own_fields(record)
    entries: list[EntryRecord] = []
    texts: list[Any] = []
    for part in [*parts, None]:
        is_result = isinstance(part, dict) and part.get("type") == "tool_result"
        if texts and (is_result or part is None):
            text = parts_text(texts)
            entries.append(_user_message(record, text, _numbered(base, len(entries)), extra, context))
            texts, extra = [], {}
        if isinstance(part, dict) and is_result:
            entries.append(_result(record, part, _numbered(base, len(entries)), extra, context))
            extra = {}
        elif part is not None:
            texts.append(part)
    return entries


def _numbered(base: str, index: int) -> str:
    return f"{base}#{index}" if index else base


def _user_message(
    record: dict[str, Any], text: str, name: str, extra: dict[str, Any], context: Context
) -> EntryRecord:
    occurred_at, time_text = context.time(record)
    injected = is_injected(record, text)
    return EntryRecord(
        kind="context" if injected else "message",
        role="user",
        content=text,
        source_hash=hash_of([name, "user", text]),
        source_id=name,
        occurred_at=occurred_at,
        occurred_at_text=time_text,
        is_injected=injected,
        extra=extra,
    )


def _result(
    record: dict[str, Any], part: dict[str, Any], name: str, extra: dict[str, Any], context: Context
) -> EntryRecord:
    occurred_at, time_text = context.time(record)
    content, call_id = parts_text(part.get("content")), call_ref(part.get("tool_use_id"))
    is_error = part.get("is_error") is True
    known = ("type", "content", "tool_use_id", "is_error")
    rest = without_binary({key: value for key, value in part.items() if key not in known})
    return EntryRecord(
        kind="tool_result",
        role="tool",
        content=content,
        source_hash=hash_of([name, "tool", content, call_id, is_error]),
        source_id=name,
        tool_call_id=call_id,
        occurred_at=occurred_at,
        occurred_at_text=time_text,
        extra=extra | ({"is_error": True} if is_error else {}) | ({"tool_result": rest} if rest else {}),
    )


def program_entry(record: dict[str, Any], role: str, text: str, context: Context, **extra: Any) -> EntryRecord:
    """Return an entry of context that the program added."""
    occurred_at, time_text = context.time(record)
    name = record_id(record) or hash_of([role, text, extra])[:32]
    return EntryRecord(
        kind="context",
        role=role,
        content=text,
        source_hash=hash_of([name, role, text, extra]),
        source_id=name,
        occurred_at=occurred_at,
        occurred_at_text=time_text,
        is_injected=True,
        extra=context.own_fields(record) | extra,
    )


def attachment_entry(record: dict[str, Any], context: Context) -> EntryRecord:
    """Return what the program attached, without its body; or a prompt that was typed while the program worked."""
    attachment = record.get("attachment")
    attachment = attachment if isinstance(attachment, dict) else {}
    kind = attachment.get("type")
    prompt = attachment.get("prompt")
    if kind == "queued_command" and isinstance(prompt, str | list):
        text = parts_text(prompt)
        typed = attachment.get("commandMode") in (None, "prompt") and not attachment.get("isMeta")
        marked = record if typed else record | {"isMeta": True}
        name = record_id(record) or hash_of(text)[:32]
        return _user_message(marked, text, name, context.own_fields(record) | {"attachment": {"type": kind}}, context)
    if len(attachment) > 1:
        context.counts.left_out[f"body of {kind if isinstance(kind, str) else 'an attachment'}"] += 1
    return program_entry(record, "system", "", context, attachment={"type": kind if isinstance(kind, str) else ""})


@dataclass
class Answer:
    """An answer of the model, which is written as several records, one for each part."""

    context: Context
    message_id: str
    request_id: str
    base: str = ""
    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[EntryRecord] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    first: dict[str, Any] = field(default_factory=dict)
    is_injected: bool = False
    usage: Any = None

    def add(self, record: dict[str, Any]) -> None:
        """Add the parts of a record."""
        message = record["message"]
        content = message.get("content")
        if not self.base:
            self.base = record_id(record) or hash_of(content)[:32]
            self.first = {"timestamp": record.get("timestamp")}
            fields = ("role", "content", "type", "usage")
            about = {name: value for name, value in message.items() if name not in fields and value is not None}
            self.extra = {"message": without_binary(about)} if about else {}
        is_synthetic = message.get("model") == "<synthetic>"
        self.is_injected = self.is_injected or is_synthetic or is_injected(record)
        self.usage = message.get("usage") or self.usage
        self.extra |= self.context.own_fields(record)
        for part in content if isinstance(content, list) else [content]:
            self._add_part(part, record)

    def _add_part(self, part: Any, record: dict[str, Any]) -> None:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "thinking":
            self._add_thinking(part)
        elif kind == "redacted_thinking":
            self.context.counts.left_out["redacted_thinking"] += 1
        elif kind in _CALLS:
            self.calls.append(tool_call(part.get("id"), part.get("name"), part.get("input")))
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            name = _numbered(self.base, len(self.results) + 1)
            self.results.append(_result(record, part, name, {}, self.context))
        elif part is not None:
            self.texts.append(part_text(part))

    def _add_thinking(self, part: dict[str, Any]) -> None:
        if part.get("signature"):
            self.context.counts.left_out["signature of thinking"] += 1
        text = part.get("thinking")
        if isinstance(text, str) and text:
            self.thinking.append(text)

    def entries(self) -> list[EntryRecord]:
        """Return the answer's entry and the results of tools that the model's provider ran; [] for reasoning only."""
        if not (self.texts or self.calls or self.results):
            return []
        occurred_at, time_text = self.context.time(self.first)
        content = "\n".join(self.texts)
        extra = self.extra | ({"thinking": self.thinking} if self.thinking else {})
        if self.usage is not None and self.message_id != self.context.last_usage:
            extra["usage"] = self.usage
        self.context.last_usage = self.message_id or self.context.last_usage
        entry = EntryRecord(
            kind="context" if self.is_injected else "tool_call" if self.calls else "message",
            role="assistant",
            content=content,
            source_hash=hash_of([self.base, "assistant", content, self.calls, self.thinking]),
            source_id=self.base,
            tool_calls=self.calls,
            occurred_at=occurred_at,
            occurred_at_text=time_text,
            is_injected=self.is_injected,
            extra=extra,
        )
        return [entry, *self.results]
