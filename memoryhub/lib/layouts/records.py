"""Dataclasses for what readers of agents' files return: one FileRead per source file.

Times are aware datetimes in UTC, or None beside their original text. ``extra`` contains source fields that the
attributes can't represent: unknown fields, and known fields of another type (content that is a list or null, tool
calls in another format). Attributes overlaid with ``extra``, in the order of ``source_fields``, restore the source
record.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypedDict

from django.utils.translation import gettext_noop

from memoryhub.lib.files.safe_folder import FileInfo
from memoryhub.lib.json_numbers import with_spellings

REPAIRED = "imported after the repair"  # actions of a Problem
KEPT_IN_PLACE = "skipped; exports for the same program contain it"
UNKNOWN_RECORDS = "unknown_records"  # in a session's extra fields: see ``unknown_record``
Outcome = Literal["rejected", "repaired", "held", "ignored", "noted"]
OUTCOMES = (  # as the template filter ``words`` prints them
    gettext_noop("Rejected"),
    gettext_noop("Repaired"),
    gettext_noop("Held"),
    gettext_noop("Ignored"),
    gettext_noop("Noted"),
)
EntryKind = Literal["message", "tool_call", "tool_result", "context", "summary"]


def unknown_record(place: int | str, value: Any) -> list[Any]:
    """Return a record of a file that can't be imported, to be exported in its place.

    ``place``: the number of entries before it; in a history, the hash of the entry before it. A third item has the
    spellings of its numbers, if they need one.
    """
    spellings = with_spellings({}, value)
    return [place, value, spellings] if spellings else [place, value]


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
    """Something in a source file that wasn't imported unchanged.

    ``what``: the problem. ``action``: what was done. ``outcome``: rejected (not imported), repaired (imported with a
    change), held (awaits review), ignored (not a memory file), noted (imported; for information). ``raw``: an excerpt
    of the source.
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
    source_hash: str  # SHA-256 of the record's canonical JSON; with its position, it identifies the entry
    name: str = ""
    tool_call_id: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    occurred_at: datetime | None = None
    occurred_at_text: str = ""
    token_count: int | None = None  # as counted by the source
    source_id: str = ""
    summary_source_id: str = ""  # of the summary that replaces it (AgTerm)
    is_injected: bool = False  # added by the program, not said by anyone: hidden, not searched, not sent to models
    is_rewound: bool = False  # on a branch that was left, or undone: kept, but not in the context
    extra: dict[str, Any] = field(default_factory=dict)
    source_fields: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SummaryRecord:
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
    """A session in one file. ``pointer``: number of consolidated entries. ``epoch``: None in agents' own files.

    ``is_by_id``: the entries' ``source_id`` identifies them in the whole workspace, so that a record that several
    files repeat is one entry; otherwise, their place and content do. ``parent_key``: of the session whose tool call
    ``parent_call_id`` started this one as a subagent. ``forked_from``: the key of the session whose entries the file
    repeats before its own.
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
    note: str = ""  # a sentence for the user, for example why the agent doesn't see it
    epoch: int | None = None
    is_by_id: bool = False
    parent_key: str = ""
    parent_call_id: str = ""
    forked_from: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DocumentLimit:
    """What a program reads of a document at most; None: no limit. Longer texts are cut or refused by the program."""

    chars: int | None = None
    byte_count: int | None = None
    lines: int | None = None


@dataclass(frozen=True)
class DocumentRecord:
    """A memory document. ``raw``: the original bytes, unless they are clean UTF-8 with ``\\n`` line endings.

    ``name``: the path below the workspace, such as ``memory/2026-11-22.md``; a bare name for the usual ones.
    ``separator``: a line that separates facts, such as ``§``; empty: facts are list items and paragraphs.
    ``is_instructions``: people write the file, often in their git repository, and the agent only reads it.
    """

    name: str
    content: str
    raw: bytes | None = None
    separator: str = ""
    limit: DocumentLimit | None = None
    is_instructions: bool = False


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


def text_hash(content: str) -> str:
    """Return the hash that identifies a history entry's text."""
    return hashlib.sha256(content.strip().encode()).hexdigest()


@dataclass(frozen=True)
class HistoryLog:
    """All history entries of a folder in order, starting with the archives.

    ``extra``: the ``preamble`` of Grip's log, and the unknown records of a journal.
    """

    entries: list[HistoryRecord]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class KnowledgeRecord:
    """``is_by_id``: ``content_id`` alone identifies the entry, also if another one has the same category and text."""

    content_id: str
    category: str
    content: str
    source: str = ""
    tags: list[str] = field(default_factory=list)
    access_count: int = 0
    created_at: datetime | None = None
    accessed_at: datetime | None = None
    is_by_id: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ObservationRecord:
    """``is_partial``: ``uid`` has only the first 8 characters (from the output of ``agentmem list``)."""

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
    """``value``: a string, or with ``is_json`` the JSON text of another type."""

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
    """The items of a source file, and a problem for everything in it that isn't among them unchanged.

    ``info``: None if the file couldn't be read. ``is_empty``: the file is unexpectedly empty, so the hub keeps its
    rows. ``note``: a sentence for the user about the file. ``is_skipped``: unchanged since the last read.
    ``always_reread``: the content also depends on another file, so the stamp doesn't show all changes.
    ``is_foreign``: no reader reads the file, so that it doesn't count as read. ``is_store``: a database that was
    read; each of its sessions is a FileRead of its own.
    """

    path: str
    kind: FileKind
    info: FileInfo | None
    items: list[Item] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    is_empty: bool = False
    note: str = ""
    is_skipped: bool = False
    always_reread: bool = False
    is_foreign: bool = False
    is_store: bool = False


@dataclass(frozen=True)
class DetectedLayout:
    """The layout of a folder, named as in ``memoryhub.lib.layouts.read.READERS``.

    ``home``, ``workspace``: paths relative to the folder. ``program``: for the hub's layout, the program that the
    records came from. ``project``: the ``Project.name`` to read, of a home that contains several.
    """

    layout: str
    version: str
    home: str = ""
    workspace: str = ""
    settings: dict[str, int | float | bool | str] = field(default_factory=dict)
    program: str = ""
    project: str = ""


@dataclass(frozen=True)
class Project:
    """One project (or profile, or agent) in the home of a program that keeps several; each is a workspace.

    ``name``: unique in the home and stable. ``label``: shown to people. ``path``: the folder that its sessions worked
    in, if known. ``byte_count``: of its files, or an estimate.
    """

    name: str
    label: str
    path: str = ""
    session_count: int = 0
    byte_count: int = 0
    last_active: datetime | None = None
