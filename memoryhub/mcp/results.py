"""Structured results of the tools. Times are in UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel


class Value(BaseModel):
    key: str
    value: str
    updated_at: datetime


class Finding(BaseModel):
    """Why the content check flagged a text."""

    field: str
    line: int
    code: str
    message: str


class Checked(BaseModel):
    """``held``: flagged, and not in any other result until a person approves it."""

    held: bool
    findings: list[Finding]


class WrittenValue(Checked):
    key: str
    updated_at: datetime


class Keys(BaseModel):
    keys: list[str]
    next_cursor: str | None


class Match(BaseModel):
    """A search result. ``text`` is truncated; ``snippet`` is the part that matches."""

    kind: str
    id: int
    session: str | None
    position: int | None
    occurred_at: datetime | None
    score: float | None
    snippet: str
    text: str


class Matches(BaseModel):
    query: str
    notes: list[str]
    results: list[Match]


class RecalledMemory(BaseModel):
    kind: str
    id: int
    text: str


class Recalled(BaseModel):
    """Contents by category, best match first, as grid's own tool returns them, and other memory with its kind."""

    findings: list[str]
    insights: list[str]
    lessons: list[str]
    memories: list[RecalledMemory]


class Added(Checked):
    id: int
    category: str
    content: str


class Offered(BaseModel):
    """A content that resembles the observation with this id."""

    observation: int
    content: str


class Remembered(BaseModel):
    added: list[Added]
    offered: list[Offered]


class AddedFact(BaseModel):
    """``status``: written, unchanged, or held for review."""

    document: str
    status: str
    revision: int


class Cleared(BaseModel):
    """A cleared session; with ``run``, it is cleared when that run is done."""

    session: str
    epoch: int
    run: int | None


class Note(Checked):
    id: int
    position: int
    session: str | None
    occurred_at: datetime | None


class HistoryNote(Note):
    content: str


class History(BaseModel):
    entries: list[HistoryNote]
    next_cursor: str | None


class Author(BaseModel):
    kind: str
    name: str


class DocumentText(BaseModel):
    name: str
    revision: int
    hash: str
    author: Author
    reason: str
    created_at: datetime
    content: str


class Fact(BaseModel):
    id: int
    document: str
    section: str
    category: str
    text: str
    pinned: bool
    verified_at: datetime | None
    current: bool


class Message(BaseModel):
    id: int
    session: str
    epoch: int
    position: int
    kind: str
    role: str
    content: str
    tool_calls: list[dict[str, Any]]
    at: datetime | None


class HistoryOrigin(BaseModel):
    id: int
    content: str
    at: datetime | None


class Origin(BaseModel):
    """``kind``: learned, written_by, recorded_with or probably_from; only the last has a ``score``, up to 1."""

    kind: str
    score: float | None
    run: int | None
    history: HistoryOrigin | None
    message: Message | None
    around: list[Message]


class FactRevision(BaseModel):
    action: str
    revision: int
    author: str
    reason: str
    created_at: datetime
    text: str


class SimilarFact(BaseModel):
    id: int
    document: str
    text: str
    similarity: float


class Why(BaseModel):
    """``certainty``: certain, likely, probable or unknown."""

    fact: Fact
    kind: str
    certainty: str
    origins: list[Origin]
    revisions: list[FactRevision]
    readers: int
    near_duplicates: list[SimilarFact]


class Proposal(BaseModel):
    id: int
    document: str
    status: str
    base: int
    why: list[str]
    reason: str
    created_at: datetime
