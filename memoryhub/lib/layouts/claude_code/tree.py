"""Find out which records of a Claude Code session are in its context.

Records form a tree by ``parentUuid``. What a rewind or an edited prompt left behind is on another branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Node:
    """A record of the tree. ``kind``: user, assistant, or the type of a record that nobody said.

    ``parent``: for a compaction, the last record before it. ``continues``: a missing parent is the record before it
    in the file, as at a compaction. ``answer``: the id of the answer that the record is part of. ``call``: the record
    of the tool call that it is the result of. ``is_result``: it only has results of tool calls.
    """

    uuid: str
    parent: str
    kind: str
    answer: str = ""
    call: str = ""
    is_result: bool = False
    continues: bool = False


def active_path(nodes: Sequence[Node]) -> set[str]:
    """Return the ids of the records in the context, or folded by a summary in it.

    They are those from the last message back to the root, the other parts of the same answers with the results of
    their tool calls (which are calls made at the same time), and what the program attached to them.
    """
    places = {node.uuid: place for place, node in enumerate(nodes)}
    path: set[str] = set()
    place: int | None = next((p for p in reversed(range(len(nodes))) if nodes[p].kind in ("user", "assistant")), None)
    while place is not None and nodes[place].uuid not in path:
        node = nodes[place]
        path.add(node.uuid)
        before = place - 1 if place and (node.parent or node.continues) else None
        place = places.get(node.parent, before) if node.parent else before
    answers = {node.answer for node in nodes if node.answer and node.uuid in path}
    for node in nodes:
        is_part = node.answer in answers and bool(node.answer) and node.parent in path
        is_attached = node.is_result or not (node.kind in ("user", "assistant") or node.continues)
        if is_part or (is_attached and node.parent in path) or (node.call and node.call in path):
            path.add(node.uuid)
    return path


def chain(nodes: Iterable[Node], head: str, tail: str) -> set[str]:
    """Return the ids from ``tail`` back to ``head`` by parents; only ``tail`` if ``head`` isn't before it."""
    parents = {node.uuid: node.parent for node in nodes}
    found = [tail]
    while found[-1] != head and parents.get(found[-1], "") and len(found) <= len(parents):
        found.append(parents[found[-1]])
    return set(found) if found[-1] == head else {tail}
