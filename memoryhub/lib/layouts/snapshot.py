"""The memory of a workspace on its way out: records of every kind, read as they are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any

from memoryhub.lib.layouts.records import (
    CachedResponseRecord,
    DocumentRecord,
    HistoryRecord,
    KeyValueRecord,
    KnowledgeRecord,
    ObservationRecord,
    SessionRecord,
)

LAYOUTS = ("nanobot", "nanobot-current", "grip", "grid", "agterm", "hub")
WORDS = {
    "nanobot": "nanobot 0.1",
    "nanobot-current": "nanobot 0.3",
    "grip": "Grip",
    "grid": "grid",
    "agterm": "AgTerm",
    "hub": "MemoryHub",
}


def program_of(layout: str) -> str:
    """Return which program reads a layout: nanobot has two."""
    return "nanobot" if layout == "nanobot-current" else layout


@dataclass(frozen=True)
class Snapshot:
    """All that is exported. ``program``: whose files the rows came from, hub for none. Iterables are read once.

    ``sessions`` holds each session's current epoch; for the hub's own layout its earlier ones too, oldest first.
    ``keys`` are the sessions' keys, ``made_at`` when the workspace was made, ``identity`` 32 hex digits of its own.
    ``graph`` yields the parts of semantic_graph.json; ``graph_rows`` its terms: text, embedding, related, extra.
    """

    program: str
    identity: str
    made_at: datetime
    keys: Iterable[str] = ()
    sessions: Iterable[SessionRecord] = ()
    documents: Iterable[DocumentRecord] = ()
    history: Iterable[HistoryRecord] = ()
    knowledge: Iterable[KnowledgeRecord] = ()
    observations: Iterable[ObservationRecord] = ()
    key_values: Iterable[KeyValueRecord] = ()
    cached: Iterable[CachedResponseRecord] = ()
    graph: Iterable[str] = ()
    graph_meta: dict[str, Any] = field(default_factory=dict)
    graph_rows: Iterable[dict[str, Any]] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    program_version: str = ""
    zone: tzinfo = UTC
