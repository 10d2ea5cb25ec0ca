"""The tables whose rows can be edited, many at once: their models, and what one and many of their rows are called."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Model

from knowledge_app.models import (
    CachedResponse,
    Concern,
    Fact,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    Observation,
)
from sessions_app.models import Run, Session


@dataclass(frozen=True)
class Table:
    """A table whose rows can be edited: its model, and what one and many of its rows are called."""

    model: type[Model]
    one: str
    many: str
    has_history: bool = True
    own_key: str = ""  # what no two rows of a workspace share, of a table whose rows are removed for good
    is_dated: bool = True  # an edit is a change of the row itself, and moves its updated_at

    def count(self, number: int) -> str:
        return f"1 {self.one}" if number == 1 else f"{number:,} {self.many}"


TABLES = {
    "knowledge": Table(KnowledgeEntry, "knowledge entry", "knowledge entries"),
    "observations": Table(Observation, "observation", "observations"),
    "key_values": Table(KeyValue, "key-value", "key-values"),
    "cached": Table(CachedResponse, "cached response", "cached responses", has_history=False, own_key="key"),
    "concerns": Table(Concern, "concern", "concerns", has_history=False),
    "sessions": Table(Session, "session", "sessions", has_history=False, is_dated=False),
    "history": Table(HistoryEntry, "history entry", "history entries", has_history=False),
    "facts": Table(Fact, "fact", "facts", has_history=False),
    "runs": Table(Run, "run", "runs", has_history=False),
}
