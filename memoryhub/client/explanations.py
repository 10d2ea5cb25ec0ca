"""The shape of the explanation of a fact."""

from __future__ import annotations

from typing import Any, TypedDict


class Fact(TypedDict):
    """A bullet of a memory document. ``current``: False if it was removed."""

    id: int
    document: str
    section: str
    category: str
    text: str
    pinned: bool
    verified_at: str | None
    current: bool


class Message(TypedDict):
    id: int
    session: str
    epoch: int
    position: int
    kind: str
    role: str
    content: str
    tool_calls: list[dict[str, Any]]
    at: str | None


class HistoryOrigin(TypedDict):
    id: int
    content: str
    at: str | None


class Origin(TypedDict):
    """An origin of a fact: learned, written_by, recorded_with or probably_from (with a ``score`` of up to 1)."""

    kind: str
    score: float | None
    run: int | None
    history: HistoryOrigin | None
    message: Message | None
    around: list[Message]


class FactRevision(TypedDict):
    """A revision that added, reworded or removed a fact. ``proposed_by``: who proposed what the author accepted."""

    action: str
    revision: int
    author: str
    proposed_by: str | None
    proposal: int | None
    reason: str
    created_at: str
    text: str


class SimilarFact(TypedDict):
    id: int
    document: str
    text: str
    similarity: float


class AcceptedProposal(TypedDict):
    """The proposal from which a person accepted the words of a fact."""

    id: int | None
    proposed_by: str | None
    accepted_by: str
    accepted_at: str


class Why(TypedDict):
    """Where a fact came from. ``certainty``: certain, likely, probable or unknown."""

    fact: Fact
    kind: str
    certainty: str
    proposal: AcceptedProposal | None
    origins: list[Origin]
    revisions: list[FactRevision]
    readers: int
    near_duplicates: list[SimilarFact]
