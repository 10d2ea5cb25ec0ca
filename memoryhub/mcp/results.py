"""Structured results of the tools. Times are in UTC."""

from __future__ import annotations

from datetime import datetime

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
    """``run``: the proposal that a person decides about, if the value waits for that."""

    key: str
    updated_at: datetime
    run: int | None = None


class Keys(BaseModel):
    keys: list[str]
    next_cursor: str | None


class Compact(BaseModel):
    """A result that clients show to models instead of the text: fields without a value are left out."""


class Match(Compact):
    """A hit. ``text``: of a search, the part that matches; of a recall, the start of the row's text.

    ``workspace``: unless it is the token's own.
    """

    kind: str
    id: int
    text: str
    session: str | None = None
    workspace: str | None = None


class Matches(Compact):
    """Hits of all kinds, best first."""

    results: list[Match]
    notes: list[str] | None = None
    corrected: dict[str, str] | None = None


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


class SessionLine(Compact):
    session: str
    entries: int
    title: str | None = None


class Sessions(Compact):
    sessions: list[SessionLine]
    next_cursor: str | None = None


class SessionMessage(Compact):
    position: int
    role: str
    text: str


class SessionMessages(Compact):
    """The last messages in order; ``next_cursor``: of those before them."""

    session: str
    messages: list[SessionMessage]
    next_cursor: str | None = None


class Appended(BaseModel):
    session: str
    first: int
    last: int
    added: int


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


class HistoryNote(Compact):
    id: int
    content: str


class History(Compact):
    entries: list[HistoryNote]
    next_cursor: str | None = None


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


class ExplainedFact(Compact):
    id: int
    text: str


class Origin(Compact):
    """``kind``: learned, written_by, recorded_with or probably_from. ``text``: of the message or history entry."""

    kind: str
    session: str | None = None
    text: str


class AcceptedProposal(Compact):
    id: int | None = None
    proposed_by: str | None = None
    accepted_by: str


class Why(Compact):
    """``certainty``: certain, likely, probable or unknown. ``proposal``: from which a person accepted the fact."""

    fact: ExplainedFact
    kind: str
    certainty: str
    proposal: AcceptedProposal | None = None
    origins: list[Origin]
    revisions: list[str]


class Correction(Compact):
    """``status``: changed, unchanged, held or proposed. ``run``: of the edit, or of the proposal to edit a row."""

    kind: str
    id: int
    status: str
    run: int | None = None
    proposal: int | None = None
    revision: int | None = None


class Proposal(BaseModel):
    id: int
    document: str
    status: str
    base: int
    why: list[str]
    reason: str
    created_at: datetime
