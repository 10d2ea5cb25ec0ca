"""What a reader hands over: plain values, one FileRead for each source file, no database and no guesses.

Times are aware datetimes in UTC, or None with the original text beside. ``extra`` holds the source fields that the
named attributes can't hold as they were, under their own names: unknown fields, and known ones of another shape
(content that is a list or null, tool calls of another spelling). So attributes overlaid with ``extra``, in the order
of ``source_fields``, are the source record again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypedDict

from django.utils.translation import gettext_noop

from memoryhub.lib.safe_folder import FileInfo

Outcome = Literal["rejected", "repaired", "held", "ignored", "noted"]
OUTCOMES = (  # as the filter ``words`` shows them
    gettext_noop("Rejected"),
    gettext_noop("Repaired"),
    gettext_noop("Held"),
    gettext_noop("Ignored"),
    gettext_noop("Noted"),
)
EntryKind = Literal["message", "tool_call", "tool_result", "context", "summary"]


class FunctionCall(TypedDict):
    name: str
    arguments: str


class ToolCall(TypedDict):
    """One tool call in the OpenAI shape; ``arguments`` is JSON text."""

    id: str
    type: str
    function: FunctionCall


@dataclass(frozen=True)
class Problem:
    """Something in a source that was not taken as it stands.

    ``what`` says what is wrong, ``action`` what was done. ``outcome``: rejected (not in the hub), repaired (taken
    with a stated change), held (waits for a person), ignored (no memory file), noted (taken; worth knowing).
    ``raw`` is an excerpt of the source bytes, so that nothing rejected is out of reach.
    """

    file: str
    line: int | None
    what: str
    action: str
    outcome: Outcome
    raw: bytes = b""


@dataclass(frozen=True)
class EntryRecord:
    kind: EntryKind
    role: str
    content: str
    source_hash: str  # SHA-256 of the record's canonical JSON: its identity together with its position
    name: str = ""
    tool_call_id: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    occurred_at: datetime | None = None
    occurred_at_text: str = ""
    token_count: int | None = None  # where the source counted
    source_id: str = ""
    summary_source_id: str = ""  # AgTerm: the summary that folds it
    extra: dict[str, Any] = field(default_factory=dict)
    source_fields: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SummaryRecord:
    """``method`` and ``model`` say how it was made, where the source tells."""

    source_id: str
    content: str
    entry_source_ids: list[str]
    token_count: int | None = None
    original_token_count: int | None = None
    created_at: datetime | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    method: str = ""
    model: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SessionRecord:
    """One conversation as one file holds it. ``pointer`` counts this file's entries, 0 to their number.

    ``epoch`` is None where the file doesn't say which it holds, as no agent's does.
    """

    key: str
    entries: list[EntryRecord]
    summaries: list[SummaryRecord] = field(default_factory=list)
    pointer: int = 0
    summary_text: str = ""
    title: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    is_visible_to_agent: bool = True
    note: str = ""  # one sentence for people, e.g. why the agent doesn't see it
    epoch: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DocumentRecord:
    """A memory document. ``raw`` holds the bytes where they were not clean UTF-8 with ``\\n`` line ends."""

    name: str
    content: str
    raw: bytes | None = None


@dataclass(frozen=True)
class HistoryRecord:
    content: str  # without the time prefix
    source_hash: str
    occurred_at: datetime | None = None
    occurred_at_text: str = ""  # the prefix as written
    session_key: str = ""
    is_archived: bool = False
    file: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class HistoryLog:
    """All history entries of a folder in order, archives first: an entry split by a rotation is whole again."""

    entries: list[HistoryRecord]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class KnowledgeRecord:
    content_id: str
    category: str
    content: str
    source: str = ""
    tags: list[str] = field(default_factory=list)
    access_count: int = 0
    created_at: datetime | None = None
    accessed_at: datetime | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ObservationRecord:
    """``uid`` may be the first 8 characters only (the text of ``agentmem list``): then ``is_partial``."""

    uid: str
    category: str
    content: str
    source: str = ""
    occurred_at: datetime | None = None
    occurred_at_text: str = ""
    is_partial: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class KeyValueRecord:
    """``value`` is the string, or for any other type its JSON text with ``is_json``."""

    key: str
    value: str
    is_json: bool = False


@dataclass(frozen=True)
class TermRecord:
    text: str
    embedding: list[float]
    related: list[str]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GraphRecord:
    provider: str
    model: str
    base_url: str
    dimensions: int
    built_at: datetime | None
    built_at_text: str
    terms: list[TermRecord]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CachedResponseRecord:
    key: str
    model: str
    response: str
    preview: str = ""
    created_at: datetime | None = None
    accessed_at: datetime | None = None
    extra: dict[str, Any] = field(default_factory=dict)


Item = (
    SessionRecord
    | DocumentRecord
    | HistoryLog
    | KnowledgeRecord
    | ObservationRecord
    | KeyValueRecord
    | GraphRecord
    | CachedResponseRecord
)

FileKind = Literal[
    "session",
    "document",
    "history",
    "knowledge",
    "observations",
    "key_values",
    "graph",
    "cache",
    "settings",
    "other",
]


@dataclass(frozen=True)
class FileRead:
    """One source file as read: its items, and a problem for everything in it that is not among them as it was.

    ``info`` is None where the file couldn't be read. ``is_empty``: it holds nothing where there should be something;
    the hub keeps what it has. ``note`` says in a sentence what the file is, where that isn't plain. ``is_skipped``:
    it is as it was at the last read, and was not read again. ``look_again``: another file
    belongs to it, so that its own stamp doesn't tell whether something changed.
    """

    path: str
    kind: FileKind
    info: FileInfo | None
    items: list[Item] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    is_empty: bool = False
    note: str = ""
    is_skipped: bool = False
    look_again: bool = False


@dataclass(frozen=True)
class Found:
    """Which layout a folder has: ``layout`` nanobot, grip, grid, agterm or hub; ``version`` in words; ``home`` and
    ``workspace`` are folders relative to the path given ("" is the folder itself). ``program``: whose records the
    hub's own layout holds, where they are not the hub's."""

    layout: str
    version: str
    home: str = ""
    workspace: str = ""
    settings: dict[str, int | float | bool | str] = field(default_factory=dict)
    program: str = ""
