"""Select the entries of a session that a model accepts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from django.utils.translation import gettext

from memoryhub.lib.layouts.records import ToolCall

DEFAULT_MAX_MESSAGES = 500


class WindowEntry(Protocol):
    @property
    def position(self) -> int: ...
    @property
    def role(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def tool_call_id(self) -> str: ...
    @property
    def tool_calls(self) -> list[ToolCall]: ...


EntryT = TypeVar("EntryT", bound=WindowEntry)


@dataclass(frozen=True)
class Dropped:
    """An entry left out of the context, and why; a summary or document has no position."""

    position: int | None
    why: str


@dataclass(frozen=True)
class Window(Generic[EntryT]):
    """The entries to send to the model, in order, and those left out."""

    kept: list[EntryT]
    dropped: list[Dropped]


def safe_window(
    entries: Sequence[EntryT], *, max_messages: int = DEFAULT_MAX_MESSAGES, from_user: bool = True
) -> Window[EntryT]:
    """Return the latest unconsolidated entries in a form that providers accept (nanobot's rule).

    ``entries``: those from the pointer on, in order. Keeps the last ``max_messages`` (0 or less: all), drops what
    precedes the first user message, and then empty assistant messages, tool results without a call and calls without
    all their results, until nothing changes. ``dropped`` is ordered by position. ``from_user=False`` keeps the
    beginning (after a summary).
    """
    kept, dropped = list(entries), []
    if 0 < max_messages < len(kept):
        why = gettext("older than the limit")
        dropped += [Dropped(entry.position, why) for entry in kept[:-max_messages]]
        kept = kept[-max_messages:]
    first_user = next((i for i, entry in enumerate(kept) if entry.role == "user"), 0) if from_user else 0
    why = gettext("before the first user message")
    dropped += [Dropped(entry.position, why) for entry in kept[:first_user]]
    kept = kept[first_user:]
    while unsafe := _unsafe(kept):
        dropped += [Dropped(kept[i].position, why) for i, why in unsafe.items()]
        kept = [entry for i, entry in enumerate(kept) if i not in unsafe]
    return Window(kept, sorted(dropped, key=lambda drop: drop.position or 0))


class FoldEntry(WindowEntry, Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def token_count(self) -> int: ...


def fold_end(entries: Sequence[FoldEntry], *, keep: int) -> int:
    """Return how many leading entries can be summarised so that at least the last ``keep`` stay.

    Tool calls stay with their results. The rest starts with a user message if that still summarises at least half of
    the possible entries. Ids can repeat: a result answers the latest call.
    """
    limit = max(0, len(entries) - keep)
    safe = last_safe_cut(entries, limit)
    if not keep:
        return safe
    turn = next((i for i in range(safe, 0, -1) if i < len(entries) and entries[i].role == "user"), 0)
    if sum(entry.token_count for entry in entries[:turn]) * 2 >= sum(entry.token_count for entry in entries[:safe]):
        return turn or safe
    return safe


def last_safe_cut(entries: Sequence[FoldEntry], limit: int) -> int:
    """Return the largest cut up to ``limit`` that splits no tool group, or 0."""
    called: dict[str, int] = {}
    unsafe: set[int] = set()
    for i, entry in enumerate(entries):
        called |= {call["id"]: i for call in entry.tool_calls}
        if entry.kind == "tool_result":
            unsafe.update(range(called.get(entry.tool_call_id, i - 1) + 1, i + 1))
    return next((i for i in range(limit, 0, -1) if i not in unsafe), 0)


def _unsafe(entries: Sequence[WindowEntry]) -> dict[int, str]:
    """Return the indexes of entries that a provider would reject, with reasons."""
    declared: set[str] = set()
    orphans: dict[int, str] = {}
    answered_after: set[str] = set()
    for i, entry in enumerate(entries):
        declared |= {call["id"] for call in entry.tool_calls}
        if entry.role == "tool" and entry.tool_call_id not in declared:
            orphans[i] = gettext("a tool result without its call")
        elif entry.role == "assistant" and not entry.tool_calls and not entry.content.strip():
            orphans[i] = gettext("an assistant message without text or tool calls")
    incomplete: dict[int, str] = {}
    for i in range(len(entries) - 1, -1, -1):
        entry = entries[i]
        if entry.tool_calls and not {call["id"] for call in entry.tool_calls} <= answered_after:
            incomplete[i] = gettext("a tool call without all its results")
        if entry.role == "tool":
            answered_after.add(entry.tool_call_id)
    return orphans | incomplete
