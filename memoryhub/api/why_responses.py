"""The shape of the explanation of a fact, in answers of the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ninja import Schema


class FactAnswer(Schema):
    id: int
    document: str
    section: str
    category: str
    text: str
    pinned: bool
    verified_at: datetime | None
    current: bool


class MessageAnswer(Schema):
    id: int
    session: str
    epoch: int
    position: int
    kind: str
    role: str
    content: str
    tool_calls: list[dict[str, Any]]
    at: datetime | None


class HistoryOrigin(Schema):
    id: int
    content: str
    at: datetime | None


class OriginAnswer(Schema):
    """``kind``: learned, written_by, recorded_with or probably_from; only the last has a ``score``, up to 1.

    ``around``: the message with the two before and after it.
    """

    kind: str
    score: float | None
    run: int | None
    history: HistoryOrigin | None
    message: MessageAnswer | None
    around: list[MessageAnswer]


class FactRevision(Schema):
    """``action``: added, reworded or removed. ``proposed_by``: who proposed what the author accepted."""

    action: str
    revision: int
    author: str
    proposed_by: str | None
    proposal: int | None
    reason: str
    created_at: datetime
    text: str


class SimilarFact(Schema):
    id: int
    document: str
    text: str
    similarity: float


class AcceptedProposal(Schema):
    id: int | None
    proposed_by: str | None
    accepted_by: str
    accepted_at: datetime


class WhyAnswer(Schema):
    """``kind``: person, proposal, agent, unknown, or the best origin's.

    ``certainty``: certain, likely, probable or unknown.
    ``proposal``: from which a person accepted the fact's words, which are as certain as the best origin.
    """

    fact: FactAnswer
    kind: str
    certainty: str
    proposal: AcceptedProposal | None
    origins: list[OriginAnswer]
    revisions: list[FactRevision]
    readers: int
    near_duplicates: list[SimilarFact]
