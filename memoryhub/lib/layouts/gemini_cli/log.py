"""Replay the log of a Gemini CLI session: messages by id, updates, replaced lists and rewinds.

The rules are those of the program's own loader (``chatRecordingService.ts``). Its resume writes the whole list of
messages again, without their tool calls' results and with new times; what was known before is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from memoryhub.lib.layouts.jsonl import placeholder, without_binary
from memoryhub.lib.layouts.message_parts import MAX_OWN_ID, hash_of
from memoryhub.lib.layouts.problem_counts import Place, ProblemCounts
from memoryhub.lib.validation import json_text

SNAPSHOT = "<state_snapshot>"  # begins the text that replaces compressed messages, if the model does as it is told
REPLY_TO_SUMMARY = "Got it. Thanks for the additional context"  # and a mark: all that the program puts behind it


@dataclass
class ChatLog:
    """What a session's records lead to. ``messages``: by id, in the order of their first appearance.

    ``live``: ids in the conversation as it is now. ``folded``: the ids that each summary replaced. ``places``:
    of the messages, where they came first.
    """

    metadata: dict[str, Any] = field(default_factory=dict)
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)
    live: dict[str, None] = field(default_factory=dict)
    folded: dict[str, list[str]] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    notes: ProblemCounts = field(default_factory=lambda: ProblemCounts(""))

    def apply(self, record: Any) -> None:
        """Apply one line of the log."""
        if not isinstance(record, dict):
            self._reject(f"a record that is {type_name(record)}")
        elif isinstance(record.get("$rewindTo"), str):
            self._rewind(record["$rewindTo"])
        elif isinstance(record.get("id"), str):
            self.add(record)
        elif isinstance(record.get("$set"), dict):
            changes = dict(record["$set"])
            messages = changes.pop("messages", None)
            self._update(changes)
            if isinstance(messages, list):
                self.replace_messages(messages)
        elif "sessionId" in record:
            self._update(record)
        elif isinstance(record.get("type"), str):
            self.add(record)
        else:
            names = ", ".join(sorted(record)[:5]) or "no fields"
            self._reject(f"a record of an unknown kind, with {names[:200]}")

    def _reject(self, what: str) -> None:
        self.notes.add(what, "skipped", "rejected")

    def _update(self, changes: dict[str, Any]) -> None:
        first = self.metadata.get("startTime")
        self.metadata.update(without_binary(changes))
        if first is not None:
            self.metadata["startTime"] = first

    def add(self, message: dict[str, Any]) -> str:
        """Add a message, or replace the one with its id at its place. Return its id."""
        name = self._id_of(message)
        known = self.messages.get(name, {})
        merged = known | without_binary(message)
        if "timestamp" in known:
            merged["timestamp"] = known["timestamp"]
        self.messages[name] = merged
        self.places.setdefault(name, self.notes.at)
        self.live[name] = None
        return name

    def _id_of(self, message: dict[str, Any]) -> str:
        name = message.get("id")
        if isinstance(name, str) and 0 < len(name) <= MAX_OWN_ID:
            return name
        digest = hash_of(without_binary(message))[:32]
        count = sum(other.startswith(f"{digest}-") for other in self.messages) if digest in self.messages else 0
        return f"{digest}-{count + 1}" if digest in self.messages else digest

    def _rewind(self, name: str) -> None:
        """Take a message and all after it out of the conversation; all, if it isn't there."""
        names = list(self.live)
        kept = names[: names.index(name)] if name in self.live else []
        self.live = dict.fromkeys(kept)

    def replace_messages(self, messages: list[Any]) -> None:
        """Make these messages the conversation. A new summary among them folds those that are gone."""
        before, self.live = self.live, {}
        summaries = []
        for message, following in zip_longest(messages, messages[1:]):
            if not isinstance(message, dict):
                self._reject(f"a message that is {type_name(message)}")
            elif isinstance(message.get("id"), str) and message["id"] in self.messages:
                self._restate(message)
            else:
                name = self.add(message)
                if SNAPSHOT in plain_text(message.get("content"))[:200] or _is_reply(following):
                    summaries.append(name)
        gone = [name for name in before if name not in self.live]
        for name in summaries:
            self.folded[name] = gone

    def _restate(self, message: dict[str, Any]) -> None:
        """Put a known message back, with its new text if that differs; keep the rest, which says more."""
        name = message["id"]
        known = self.messages[name]
        merged = without_binary(message) | known
        if plain_text(known.get("content")) != plain_text(message.get("content")):
            merged["content"] = without_binary(message.get("content"))
        self.messages[name] = merged
        self.live[name] = None


def is_reply_to_summary(text: str) -> bool:
    """Return whether a model's message is the program's own, which says no more than this."""
    return text.strip().rstrip("!.") == REPLY_TO_SUMMARY


def _is_reply(message: Any) -> bool:
    is_model = isinstance(message, dict) and message.get("type") == "gemini"
    return is_model and is_reply_to_summary(plain_text(message.get("content")))


def type_name(value: Any) -> str:
    """Return the JSON type of a value that isn't an object, for a report."""
    names = {list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def parts_of(content: Any) -> list[Any]:
    """Return the parts of a message's content, which can also be one text or one part."""
    if content in (None, ""):
        return []
    return content if isinstance(content, list) else [content]


def function_part(part: Any, name: str) -> dict[str, Any] | None:
    """Return the ``functionCall`` or ``functionResponse`` of a part."""
    value = part.get(name) if isinstance(part, dict) else None
    return value if isinstance(value, dict) else None


def is_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("thought") is True


def plain_text(content: Any) -> str:
    """Return the text of a content without calls, results of calls and thoughts."""
    texts = [
        part_text(part)
        for part in parts_of(content)
        if not (function_part(part, "functionCall") or function_part(part, "functionResponse") or is_thought(part))
    ]
    return "\n".join(text for text in texts if text)


def part_text(part: Any) -> str:
    """Return a part as text; files and unknown parts by a placeholder or their JSON."""
    if isinstance(part, str):
        return str(without_binary(part))
    if not isinstance(part, dict):
        return json_text(part)
    if isinstance(part.get("text"), str):
        return str(part["text"])
    inline = part.get("inlineData")
    if isinstance(inline, dict) and isinstance(inline.get("data"), str):
        data, media = inline["data"], inline.get("mimeType")
        is_short = data.startswith("[") and data.endswith(" bytes]")
        return data if is_short else placeholder(media if isinstance(media, str) else "", data)
    file = part.get("fileData")
    if isinstance(file, dict) and isinstance(file.get("fileUri"), str):
        return f"[file, {without_binary(file['fileUri'])}]"
    return json_text(without_binary(part))
