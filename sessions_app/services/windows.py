"""Which entries of a session are safe to hand to a model. Pure: reads attributes, touches no database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from memoryhub.lib.layouts.records import ToolCall

DEFAULT_MAX_MESSAGES = 500


class WindowEntry(Protocol):
    @property
    def position(self) -> int: ...
    @property
    def role(self) -> str: ...
    @property
    def tool_call_id(self) -> str: ...
    @property
    def tool_calls(self) -> list[ToolCall]: ...


EntryT = TypeVar("EntryT", bound=WindowEntry)


@dataclass(frozen=True)
class Dropped:
    """An entry left out of the context, and why in words."""

    position: int
    why: str


@dataclass(frozen=True)
class Window(Generic[EntryT]):
    """The entries that go to the model, in order, and those that don't."""

    kept: list[EntryT]
    dropped: list[Dropped]


def safe_window(entries: Sequence[EntryT], *, max_messages: int = DEFAULT_MAX_MESSAGES) -> Window[EntryT]:
    """Return the tail of the unconsolidated entries that a provider accepts (formats.md section 1).

    ``entries`` are those from the pointer on, in order. The last ``max_messages`` are kept (0 or below: all), then
    what stands before the first user message goes, if there is one; then tool results without an earlier call and
    calls without all their results, until nothing changes. ``dropped`` is in order of position.
    """
    kept, dropped = list(entries), []
    if 0 < max_messages < len(kept):
        dropped += [Dropped(entry.position, "before the last entries that fit") for entry in kept[:-max_messages]]
        kept = kept[-max_messages:]
    first_user = next((i for i, entry in enumerate(kept) if entry.role == "user"), 0)
    dropped += [Dropped(entry.position, "before the first user message") for entry in kept[:first_user]]
    kept = kept[first_user:]
    while unsafe := _unsafe(kept):
        dropped += [Dropped(kept[i].position, why) for i, why in unsafe.items()]
        kept = [entry for i, entry in enumerate(kept) if i not in unsafe]
    return Window(kept, sorted(dropped, key=lambda drop: drop.position))


def _unsafe(entries: Sequence[WindowEntry]) -> dict[int, str]:
    """Return the indexes of entries that a provider would refuse as the window stands, with the reason."""
    declared: set[str] = set()
    orphans: dict[int, str] = {}
    answered_after: set[str] = set()
    for i, entry in enumerate(entries):
        declared |= {call["id"] for call in entry.tool_calls}
        if entry.role == "tool" and entry.tool_call_id not in declared:
            orphans[i] = "a tool result without its call"
    incomplete: dict[int, str] = {}
    for i in range(len(entries) - 1, -1, -1):
        entry = entries[i]
        if entry.tool_calls and not {call["id"] for call in entry.tool_calls} <= answered_after:
            incomplete[i] = "a tool call without all its results"
        if entry.role == "tool":
            answered_after.add(entry.tool_call_id)
    return orphans | incomplete
