"""Read and write the messages of a session as a framework's own items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memoryhub.client.hub import MemoryHub

Item = dict[str, Any]
BATCH = 100  # items in one call; the hub accepts 1,000 entries, and an item may be several
MAX_REPLACED = 10_000  # items in one call that replaces others


def read_items(hub: MemoryHub, session: str) -> list[Item]:
    """Return the items of a session's current epoch as they were sent; other entries as OpenAI chat messages."""
    found = next(iter(hub.sessions(key=session)), None)
    items: list[Item] = []
    for entry in hub.entries(found["id"]) if found else ():
        sent = entry.get("items")
        if sent is not None:
            items += sent
        elif not (entry["injected"] or entry["rewound"]):
            names = ("role", "content", "name", "tool_calls", "tool_call_id", "metadata")
            items.append({name: entry.get(name) for name in names if entry.get(name) or name == "content"})
    return items


def add_items(hub: MemoryHub, session: str, items: Iterable[Item]) -> None:
    """Append items to a session, which is created if needed."""
    rows = list(items)
    for start in range(0, len(rows), BATCH):
        hub.append(session, rows[start : start + BATCH])


def replace_items(hub: MemoryHub, session: str, items: Iterable[Item]) -> None:
    """Start a new epoch of a session with these items, in one call. The hub keeps the earlier ones.

    Needs the scope edit. Items beyond MAX_REPLACED are appended afterwards.
    """
    rows = list(items)
    found = next(iter(hub.sessions(key=session)), None)
    if not found or not rows:
        clear_items(hub, session)
    else:
        hub.clear(found["id"], rows[:MAX_REPLACED])
        rows = rows[MAX_REPLACED:]
    add_items(hub, session, rows)


def clear_items(hub: MemoryHub, session: str) -> None:
    """Start an empty epoch of a session, unless it is empty already."""
    found = next(iter(hub.sessions(key=session)), None)
    if found and found["entries"]:
        hub.clear(found["id"])
