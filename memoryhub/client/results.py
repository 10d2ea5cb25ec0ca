"""What the hub answers, as typed dicts: the JSON as it came, so that what a newer hub adds is there too.

Times are ISO 8601 in UTC, token counts those of the hub.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items of a list, and the cursor of what follows, None at the end."""

    items: list[T]
    next: str | None


class WorkspaceName(TypedDict):
    slug: str
    name: str


class Me(TypedDict):
    """Whose token this is, what it may do, and where."""

    name: str
    scopes: list[str]
    workspace: WorkspaceName
    expires_at: str | None


class Session(TypedDict):
    id: int
    key: str
    channel: str
    title: str
    epoch: int
    entries: int
    active_entries: int
    original_tokens: int
    active_tokens: int
    summary_tokens: int
    last_consolidated: int
    created_at: str
    updated_at: str


class Figures(TypedDict):
    """What a session's entries weigh, and what folding the old ones left: ``ratio`` is their share of 1."""

    session: int
    entries: int
    active_entries: int
    original_tokens: int
    active_tokens: int
    summary_tokens: int
    ratio: float | None
    last_consolidated: int


class Entry(TypedDict):
    """What was said, done or answered. ``summary``: the one that it was folded into."""

    id: int
    epoch: int
    position: int
    kind: str
    role: str
    content: str
    name: str | None
    tool_call_id: str | None
    tool_calls: list[dict[str, Any]]
    tokens: int
    occurred_at: str | None
    summary: int | None


class Appended(TypedDict):
    """Where a batch came to stand: positions ``first`` to ``last``."""

    session: int
    key: str
    epoch: int
    first: int
    last: int
    added: int


class Dropped(TypedDict):
    position: int | None
    why: str


class Context(TypedDict):
    """Exactly what to send to a model, in order, and which entries had to stay out."""

    session: int
    key: str
    messages: list[dict[str, Any]]
    tokens: int
    dropped: list[Dropped]


class Imported(TypedDict):
    """How many rows of each kind a file added, changed and left, and what couldn't be read."""

    added: dict[str, int]
    updated: dict[str, int]
    unchanged: dict[str, int]
    problems: list[str]


class Run(TypedDict):
    """A piece of work that the hub does by itself. ``run(id)`` tells how it is getting on."""

    id: int
    session: str | None
    kind: str
    status: str
    from_position: int | None
    to_position: int | None
    error: str | None
    error_code: str | None
    tokens: int
    cost: str | None
    model: str | None
    stage: str | None
    attempts: int
    requested_by: str
    created_at: str
    started_at: str | None
    finished_at: str | None


class Author(TypedDict):
    kind: str
    name: str


class Revision(TypedDict):
    """A state of a document: who made it, when and why."""

    name: str
    revision: int
    hash: str
    author: Author
    reason: str
    created_at: str


class Document(Revision):
    content: str


class Proposal(TypedDict):
    """A change that waits for a person; ``why`` it does."""

    id: int
    document: str
    status: str
    base: int
    why: list[str]
    reason: str
    created_at: str
    decided_at: str | None
    decision_reason: str | None


class Written(TypedDict):
    """What became of a document: a new revision, none since it said so already, or held for a person."""

    name: str
    status: Literal["written", "unchanged", "held"]
    revision: int
    proposal: NotRequired[Proposal | None]


class HistoryEntry(TypedDict):
    id: int
    position: int
    content: str
    session: str | None
    occurred_at: str | None


class KnowledgeEntry(TypedDict):
    id: int
    content_id: str
    category: str
    content: str
    source: str
    tags: list[str]
    access_count: int
    accessed_at: str | None
    created_at: str | None
    last_verified_at: str | None
    review_by: str | None


class Observation(TypedDict):
    id: int
    uid: str
    category: str
    content: str
    source: str
    created_at: str | None
    confirmations: int
    access_count: int


class Offered(TypedDict):
    """A text that is much like an observation of before."""

    observation: int
    content: str


class Remembered(TypedDict):
    """Observations that are new, and those ``offered`` to a person as confirmations of what was known before."""

    added: list[Observation]
    offered: list[Offered]


class Recalled(TypedDict):
    findings: list[str]
    insights: list[str]
    lessons: list[str]


class Value(TypedDict):
    key: str
    value: str
    updated_at: str | None


class Result(TypedDict):
    kind: str
    id: int
    session: str | None
    position: int | None
    score: float | None
    snippet: str
    occurred_at: str | None
    text: str


class Found(TypedDict):
    """The results of a search, best first; how the query was ``read``; and ``notes`` on what was left out."""

    query: str
    read: list[str]
    notes: list[str]
    results: list[Result]
