"""Find the messages that forks of OpenCode's sessions repeat.

A fork copies the messages of its session with new ids, but with their times, so that they are older than the fork.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memoryhub.lib.files.sqlite_source import Store
from memoryhub.lib.layouts.opencode.messages import Message, Part


@dataclass(frozen=True)
class Copies:
    """The ids of copied messages with those of their originals, and the sessions that forks come from."""

    messages: dict[str, str] = field(default_factory=dict)
    forked_from: dict[str, str] = field(default_factory=dict)


def find_copies(store: Store, created: Mapping[str, Any]) -> Copies:
    """Return the copied messages of a store. ``created``: when each session was created, by its id."""
    by_time: defaultdict[Any, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in store.rows("message", ("id", "session_id", "time_created"), order="id"):
        are_texts = isinstance(row["id"], str) and isinstance(row["session_id"], str)
        if row["time_created"] and are_texts and isinstance(created.get(row["session_id"]), int):
            by_time[row["time_created"]][row["session_id"]].append(row["id"])
    found = Copies()
    for time, sessions in by_time.items():
        first, *others = sorted(sessions, key=lambda name: (created[name], name))
        for name in others:
            if isinstance(time, int) and time < created[name]:
                found.messages.update(zip(sessions[name], sessions[first], strict=False))
                found.forked_from[name] = first
    return found


def with_original_ids(store: Store, copies: Copies, message: Message, ids: dict[str, str]) -> Message:
    """Return a message; a copy gets the ids of its original, which are added to ``ids`` by their own."""
    original = copies.messages.get(message.id)
    if original is None:
        return message
    known = [str(row["id"]) for row in store.rows("part", ("id",), where={"message_id": original}, order="id")]
    ids[message.id] = original
    ids.update(zip((part.id for part in message.parts), known, strict=False))
    parts = [Part(ids.get(part.id, part.id), part.value) for part in message.parts]
    question = str(message.value.get("parentID"))
    value = message.value | ({"parentID": ids[question]} if question in ids else {})
    return Message(original, value, parts)
