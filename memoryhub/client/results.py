"""The hub's responses as typed dicts. They are the JSON as received, including fields that newer hubs add.

Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar

from memoryhub.client.explanations import Fact as Fact
from memoryhub.client.explanations import Message as Message
from memoryhub.client.explanations import Origin as Origin
from memoryhub.client.explanations import Why as Why

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list. ``next``: the cursor of the next page, None on the last."""

    items: list[T]
    next: str | None


class WorkspaceName(TypedDict):
    slug: str
    name: str


class Me(TypedDict):
    """The token's name, scopes and workspace. ``reads``: other workspaces that it may read."""

    name: str
    scopes: list[str]
    workspace: WorkspaceName
    reads: list[WorkspaceName]
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
    own: bool
    parent: int | None
    parent_call_id: str | None
    forked_from: int | None
    missing_since: str | None
    created_at: str
    updated_at: str


class Figures(TypedDict):
    """The token counts of a session. ``ratio``: the share of the original tokens that remains."""

    session: int
    entries: int
    active_entries: int
    compressed_entries: int
    summaries: int
    original_tokens: int
    active_tokens: int
    summary_tokens: int
    ratio: float | None
    last_consolidated: int


class Entry(TypedDict):
    """A message, tool call or tool result. ``summary``: the id of the summary that replaces it.

    ``items``: the messages of a framework that the entry is from, as sent; empty if the entry before has them, None
    for chat messages. Earlier hubs send no ``metadata`` and ``items``.
    """

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
    injected: bool
    rewound: bool
    metadata: NotRequired[dict[str, Any] | None]
    items: NotRequired[list[Any] | None]


class Appended(TypedDict):
    """The positions of an appended batch, ``first`` to ``last``."""

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
    """The messages to send to a model, and what was left out."""

    session: int
    key: str
    messages: list[dict[str, Any]]
    tokens: int
    dropped: list[Dropped]
    text: str | None


class Imported(TypedDict):
    """The number of rows of each kind that a file added, updated and left unchanged, and its problems."""

    added: dict[str, int]
    updated: dict[str, int]
    unchanged: dict[str, int]
    problems: list[str]


class Run(TypedDict):
    """Background work on a session. ``run(id)`` returns its progress."""

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


class ProposalAuthor(TypedDict):
    id: int
    author: Author


class Revision(TypedDict):
    """A revision of a document, without its content. ``proposal``: that its author accepted."""

    name: str
    revision: int
    hash: str
    author: Author
    proposal: ProposalAuthor | None
    reason: str
    created_at: str


class Document(Revision):
    content: str


class Proposal(TypedDict):
    """A change that needs review. ``why``: the reasons."""

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
    """The result of writing a document: a new revision, unchanged, or held for review."""

    name: str
    status: Literal["written", "unchanged", "held"]
    revision: int
    proposal: NotRequired[Proposal | None]


class Finding(TypedDict):
    """Why the content check flagged a text: its field, the line from 1, a code, and an explanation."""

    field: str
    line: int
    code: str
    message: str


class Checked(TypedDict):
    """``held``: flagged, and left out of prompts, recall, searches and lists until a person approves it.

    Hubs before this check don't send these fields.
    """

    held: NotRequired[bool]
    findings: NotRequired[list[Finding]]


class HistoryEntry(Checked):
    id: int
    position: int
    content: str
    session: str | None
    occurred_at: str | None


class KnowledgeEntry(Checked):
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


class KnowledgeChanged(KnowledgeEntry):
    """``run``: the proposal that a person decides about, if the change waits for that."""

    run: int | None


class Observation(Checked):
    id: int
    uid: str
    category: str
    content: str
    source: str
    created_at: str | None
    confirmations: int
    access_count: int


class Offered(TypedDict):
    """A text that resembles a known observation."""

    observation: int
    content: str


class Remembered(TypedDict):
    """New observations, and those ``offered`` for review as confirmations of known ones."""

    added: list[Observation]
    offered: list[Offered]


class RecalledMemory(TypedDict):
    kind: str
    id: int
    text: str
    workspace: str


class Recalled(TypedDict):
    """Observations by category, and ``memories``: matching facts, knowledge, values and history entries.

    ``corrected``: the words searched for instead of those that nothing contains, by typed word. ``notes``: sentences
    about these, and if results may be missing. Older hubs don't send them.
    """

    findings: list[str]
    insights: list[str]
    lessons: list[str]
    memories: list[RecalledMemory]
    corrected: NotRequired[dict[str, str]]
    notes: NotRequired[list[str]]


class Value(Checked):
    key: str
    value: str
    updated_at: str | None


class ValueWritten(Value):
    """``run``: the proposal that a person decides about, if the value waits for that."""

    run: int | None


class Result(TypedDict):
    kind: str
    id: int
    workspace: str
    session: str | None
    position: int | None
    score: float | None
    snippet: str
    occurred_at: str | None
    text: str


class Found(TypedDict):
    """Search results, best first. ``read``: the parsed query; ``notes``: what was corrected or left out.

    ``corrected``: as in ``Recalled``.
    """

    query: str
    read: list[str]
    corrected: NotRequired[dict[str, str]]
    notes: list[str]
    results: list[Result]
