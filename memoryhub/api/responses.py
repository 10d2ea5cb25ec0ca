"""Response bodies of the REST API. Later releases may add fields, but remove none within a version."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Generic, TypeVar

from ninja import Schema

from memoryhub.api.why_responses import FactAnswer as FactAnswer
from memoryhub.api.why_responses import MessageAnswer as MessageAnswer
from memoryhub.api.why_responses import OriginAnswer as OriginAnswer
from memoryhub.api.why_responses import WhyAnswer as WhyAnswer

Item = TypeVar("Item")


class Listed(Schema, Generic[Item]):
    """A page of a list. ``next`` is the cursor of the next page, or null on the last."""

    items: list[Item]
    next: str | None


class WorkspaceName(Schema):
    slug: str
    name: str


class Me(Schema):
    name: str
    scopes: list[str]
    workspace: WorkspaceName
    reads: list[WorkspaceName]
    expires_at: datetime | None


class SessionAnswer(Schema):
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
    missing_since: datetime | None
    created_at: datetime
    updated_at: datetime


class Figures(Schema):
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


class EntryAnswer(Schema):
    """``items``: the messages of a framework that the entry begins with, as sent; empty for the rest of one."""

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
    occurred_at: datetime | None
    summary: int | None
    injected: bool
    rewound: bool
    metadata: dict[str, Any] | None
    items: list[Any] | None


class AppendedAnswer(Schema):
    session: int
    key: str
    epoch: int
    first: int
    last: int
    added: int


class DroppedAnswer(Schema):
    position: int | None
    why: str


class ContextAnswer(Schema):
    session: int
    key: str
    messages: list[dict[str, Any]]
    tokens: int
    dropped: list[DroppedAnswer]
    text: str | None


class ImportAnswer(Schema):
    added: dict[str, int]
    updated: dict[str, int]
    unchanged: dict[str, int]
    problems: list[str]


class RunAnswer(Schema):
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
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Author(Schema):
    kind: str
    name: str


class ProposalAuthor(Schema):
    id: int
    author: Author


class RevisionAnswer(Schema):
    """``proposal``: that the author accepted with the revision."""

    name: str
    revision: int
    hash: str
    author: Author
    proposal: ProposalAuthor | None
    reason: str
    created_at: datetime


class DocumentAnswer(RevisionAnswer):
    content: str


class ProposalAnswer(Schema):
    id: int
    document: str
    status: str
    base: int
    why: list[str]
    reason: str
    created_at: datetime
    decided_at: datetime | None
    decision_reason: str | None


class SkillAnswer(Schema):
    text: str


class WriteAnswer(Schema):
    """``status``: written, unchanged, or held (waiting for review)."""

    name: str
    status: str
    revision: int
    proposal: ProposalAnswer | None = None


class CheckFinding(Schema):
    """Why the content check flagged a text: its field, the line from 1, a code, and an explanation."""

    field: str
    line: int
    code: str
    message: str


class Checked(Schema):
    """``held``: flagged, and left out of prompts, recall, searches and lists until a person approves it."""

    held: bool
    findings: list[CheckFinding]


class HistoryAnswer(Checked):
    id: int
    position: int
    content: str
    session: str | None
    occurred_at: datetime | None


class KnowledgeAnswer(Checked):
    id: int
    content_id: str
    category: str
    content: str
    source: str
    tags: list[str]
    access_count: int
    accessed_at: datetime | None
    created_at: datetime | None
    last_verified_at: datetime | None
    review_by: date | None


class KnowledgeChanged(KnowledgeAnswer):
    """``run``: the proposal that a person decides about, if the change waits for that."""

    run: int | None


class PromptAnswer(Schema):
    text: str


class ObservationAnswer(Checked):
    id: int
    uid: str
    category: str
    content: str
    source: str
    created_at: datetime | None
    confirmations: int
    access_count: int


class OfferedAnswer(Schema):
    observation: int
    content: str


class RememberedAnswer(Schema):
    added: list[ObservationAnswer]
    offered: list[OfferedAnswer]


class RecalledMemory(Schema):
    kind: str
    id: int
    text: str
    workspace: str


class RecallAnswer(Schema):
    """``corrected``: the words searched for instead of those that no row contains, by typed word."""

    findings: list[str]
    insights: list[str]
    lessons: list[str]
    memories: list[RecalledMemory]
    corrected: dict[str, str] = {}
    notes: list[str] = []


class ValueAnswer(Checked):
    key: str
    value: str
    updated_at: datetime | None


class ValueWritten(ValueAnswer):
    """``run``: the proposal that a person decides about, if the value waits for that."""

    run: int | None


class CacheLookup(Schema):
    hit: bool
    response: str | None


class CacheKept(Schema):
    """``findings``: why the content check refused the response."""

    kept: bool
    findings: list[CheckFinding] = []


class SearchResult(Schema):
    kind: str
    id: int
    workspace: str
    session: str | None
    position: int | None
    score: float | None
    snippet: str
    occurred_at: datetime | None
    text: str


class SearchAnswer(Schema):
    """``corrected``: the words searched for instead of those that no row contains, by typed word."""

    query: str
    read: list[str]
    corrected: dict[str, str] = {}
    notes: list[str]
    results: list[SearchResult]
