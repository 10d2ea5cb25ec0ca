"""The content of a workspace to export, as lazily read records."""

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
LABELS = {
    "nanobot": "nanobot 0.1",
    "nanobot-current": "nanobot 0.3",
    "grip": "Grip",
    "grid": "grid",
    "agterm": "AgTerm",
    "hub": "MemoryHub",
}


def program_of(layout: str) -> str:
    """Return the program that reads a layout; nanobot has two layouts."""
    return "nanobot" if layout == "nanobot-current" else layout


@dataclass(frozen=True)
class Snapshot:
    """The content to export. Iterables are read once.

    ``program``: the program that the rows came from, or "hub". ``identity``: the workspace's id, 32 hex digits.
    ``keys``: of the sessions. ``sessions``: the current epoch of each session; for the hub's own layout all epochs,
    oldest first. ``graph``: the text of semantic_graph.json in parts. ``graph_rows``: its terms, with text,
    embedding, related and extra. ``history_extra``: of the log's file, see ``HistoryLog``.
    """

    program: str
    identity: str
    created_at: datetime
    keys: Iterable[str] = ()
    sessions: Iterable[SessionRecord] = ()
    documents: Iterable[DocumentRecord] = ()
    history: Iterable[HistoryRecord] = ()
    history_extra: dict[str, Any] = field(default_factory=dict)
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
