"""Convert the messages and parts of an OpenCode session, of its database or its older files, to entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Any

from memoryhub.lib.layouts.agent_entries import EntryList, short_text, text_of, time_of
from memoryhub.lib.layouts.jsonl import placeholder, with_hash, without_binary
from memoryhub.lib.layouts.message_parts import tool_call
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import EntryKind, EntryRecord, SummaryRecord, ToolCall
from memoryhub.lib.validation import brief, json_text

BOOKKEEPING = ("step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction")
MESSAGE_FIELDS = ("id", "sessionID", "role", "time")
STATE_FIELDS = ("status", "input", "output", "error", "time", "raw")
TASK = "task"  # the tool that starts a subagent


@dataclass(frozen=True)
class Part:
    id: str
    value: dict[str, Any]

    @property
    def kind(self) -> Any:
        return self.value.get("type")


@dataclass(frozen=True)
class Message:
    """A message with its parts, in their order."""

    id: str
    value: dict[str, Any]
    parts: list[Part] = field(default_factory=list)


@dataclass(frozen=True)
class Undone:
    """Where an undo begins: with a message, or with a part of it. ``message``: "" if nothing is undone."""

    message: str = ""
    part: str = ""

    def covers(self, message: str, part: str = "") -> bool:
        if not self.message or message < self.message:
            return False
        return not (message == self.message and self.part) or part >= self.part


def undone(value: Any) -> Undone:
    """Return the undo that a session's ``revert`` describes."""
    if not isinstance(value, dict) or not isinstance(value.get("messageID"), str):
        return Undone()
    part = value.get("partID")
    return Undone(value["messageID"], part if isinstance(part, str) else "")


def read_messages(messages: list[Message], revert: Undone, counts: ProblemCounts, zone: tzinfo) -> EntryList:
    """Convert the messages of a session, in their order."""
    converter = _Converter(revert, counts, zone)
    for message in messages:
        counts.at = message.id
        role = message.value.get("role")
        if role == "user":
            converter.add_prompt(message)
        elif role == "assistant":
            converter.add_answer(message)
        else:
            excerpt = json_text(message.value).encode()
            counts.add(f"a message of the role {brief(role)}", "skipped", "rejected", excerpt)
    converter.found.finish()
    counts.at = ""
    counts.left_out.update(converter.skipped)
    converter.found.entries = [with_hash(entry) for entry in converter.found.entries]
    return converter.found


def call_ids(parts: list[Part]) -> dict[str, str]:
    """Return the ids of the calls that started subagents, by the ids of the subagents' sessions."""
    found: dict[str, str] = {}
    for part in parts:
        state = part.value.get("state")
        metadata = state.get("metadata") if isinstance(state, dict) else None
        child = metadata.get("sessionId") if isinstance(metadata, dict) else None
        if part.value.get("tool") == TASK and isinstance(child, str):
            found[child] = short_text(part.value.get("callID"))
    return found


class _Converter:
    def __init__(self, revert: Undone, counts: ProblemCounts, zone: tzinfo) -> None:
        self.found = EntryList("reasoning")
        self.skipped: Counter[str] = Counter()
        self._revert = revert
        self._counts = counts
        self._zone = zone

    def _entry(self, message: Message, kind: EntryKind, role: str, content: str, *times: Any) -> EntryRecord:
        occurred_at, text = time_of(self._counts, self._zone, *times, _inner(message.value, "time", "created"))
        return EntryRecord(
            kind=kind,
            role=role,
            content=content,
            source_hash="",
            occurred_at=occurred_at,
            occurred_at_text=text,
            source_id=message.id,
            is_rewound=self._revert.covers(message.id, message.parts[0].id if message.parts else ""),
            extra=self._further(message.value),
        )

    def _further(self, value: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: item for name, item in value.items() if name not in MESSAGE_FIELDS}
        summary = kept.get("summary")
        if isinstance(summary, dict) and "diffs" in summary:
            kept["summary"] = {name: item for name, item in summary.items() if name != "diffs"}
            if summary["diffs"]:
                self._counts.add("the changes that a message made to files", "left out", "noted")
        if kept.get("summary") == {}:
            del kept["summary"]
        found: dict[str, Any] = without_binary(kept)
        return found

    def _skip(self, part: Part) -> None:
        """Count a part that isn't a part of the conversation."""
        if part.kind in BOOKKEEPING:
            self.skipped[str(part.kind)] += 1
        else:
            what = f"a part of the type {brief(part.kind)}" if part.kind else "a part without a type"
            self._counts.add(what, "skipped", "rejected", json_text(part.value).encode())

    def add_prompt(self, message: Message) -> None:
        texts: list[str] = []
        injected: list[str] = []
        for part in message.parts:
            if part.kind == "text":
                is_added = part.value.get("synthetic") or part.value.get("ignored")
                (injected if is_added else texts).append(text_of(part.value.get("text")))
            elif part.kind == "file":
                texts.append(_file_text(part.value))
            elif part.kind == "subtask":
                texts.append(text_of(part.value.get("prompt")))
            else:
                self._skip(part)
        entry = self._entry(message, "message", "user", "\n".join(texts))
        if texts:
            self.found.add(entry)
        for number, text in enumerate(injected, 1):
            name = f"{message.id}#{number}"
            added = replace(entry, kind="context", content=text, source_id=name, is_injected=True, extra={})
            self.found.add(added)

    def add_answer(self, message: Message) -> None:
        texts, reasoning, tools = self._answer_parts(message)
        text = "\n".join(text for text in texts if text)
        failure = message.value.get("error")
        if message.value.get("summary") is True and text and not tools:
            self._add_summary(message, text)
            return
        if failure and not text and not tools:
            text = text_of(_inner(failure, "data", "message") or _inner(failure, "name") or json_text(failure))
        if not text and not tools:
            self.found.add_reasoning(reasoning)
            return
        entry = self._entry(message, "tool_call" if tools else "message", "assistant", text)
        extra = entry.extra | ({"is_error": True} if failure else {})
        self.found.add(replace(entry, tool_calls=[_call(part) for part in tools], extra=extra), reasoning)
        for part in tools:
            self._add_result(message, part)

    def _answer_parts(self, message: Message) -> tuple[list[str], list[Any], list[Part]]:
        """Return the texts, the reasoning and the tool parts of an answer."""
        texts: list[str] = []
        reasoning: list[Any] = []
        tools: list[Part] = []
        for part in message.parts:
            if part.kind == "text":
                texts.append(text_of(part.value.get("text")))
            elif part.kind == "reasoning":
                reasoning.append(without_binary({key: item for key, item in part.value.items() if key != "type"}))
            elif part.kind == "tool":
                tools.append(part)
            elif part.kind == "file":
                texts.append(_file_text(part.value))
            else:
                self._skip(part)
        return texts, reasoning, tools

    def _add_result(self, message: Message, part: Part) -> None:
        state = part.value.get("state")
        if not isinstance(state, dict) or state.get("status") not in ("completed", "error"):
            return
        is_error = state["status"] == "error"
        output = text_of(state.get("error" if is_error else "output"))
        files = state.get("attachments")
        for file in files if isinstance(files, list) else ():
            output += "\n" + _file_text(file) if isinstance(file, dict) else ""
        kept = {name: item for name, item in state.items() if name not in (*STATE_FIELDS, "attachments")}
        if isinstance(kept.get("metadata"), dict):
            kept["metadata"] = {name: item for name, item in kept["metadata"].items() if item != state.get("output")}
        entry = self._entry(message, "tool_result", "tool", output, _inner(state, "time", "end"))
        self.found.add(
            replace(
                entry,
                source_id=part.id,
                name=short_text(part.value.get("tool")),
                tool_call_id=_call(part)["id"],
                is_rewound=self._revert.covers(message.id, part.id),
                extra=without_binary(kept) | ({"is_error": True} if is_error else {}),
            )
        )

    def _add_summary(self, message: Message, text: str) -> None:
        entry = self._entry(message, "summary", "assistant", text)
        if entry.is_rewound:
            self.found.add(entry)
            return
        model = message.value.get("modelID")
        self.found.fold(
            SummaryRecord(
                source_id=message.id,
                content=text,
                entry_source_ids=[],
                created_at=entry.occurred_at,
                model=short_text(model, 200),
                extra=entry.extra,
            )
        )


def _inner(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _call(part: Part) -> ToolCall:
    call_id = part.value.get("callID")
    return tool_call(
        call_id if isinstance(call_id, str) else part.id, part.value.get("tool"), _inner(part.value, "state", "input")
    )


def _file_text(part: dict[str, Any]) -> str:
    """Return a description of an attached file."""
    name, mime, url = short_text(part.get("filename"), 200), short_text(part.get("mime"), 100), part.get("url")
    if isinstance(url, str) and url.startswith("data:"):
        size = placeholder(mime, url.partition(",")[2])
        return f"{size} {name}".strip()
    return f"[file {name or short_text(url, 200)}]"
