"""Write MemoryHub's own export format, which is lossless.

``memoryhub.json`` has the format and its version. The other files are JSON lines of the dataclasses in
``records.py``, without fields that have their default value: ``sessions/*.jsonl`` (one epoch per file: a ``session``
line, then ``summary`` and ``entry`` lines), ``history.jsonl``, ``knowledge.jsonl``, ``observations.jsonl``,
``key-values.jsonl``, ``cached-responses.jsonl``, ``terms.jsonl`` (a ``graph`` line, then ``term`` lines, embeddings
as base64 of float32). ``documents/`` contains memory documents unchanged, ``documents.jsonl`` a ``DocumentInfo`` for
some of them. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from typing import Any

from memoryhub.lib import vectors
from memoryhub.lib.layouts.records import DocumentLimit, DocumentRecord, EntryRecord, SessionRecord
from memoryhub.lib.layouts.snapshot import Snapshot

DOCUMENTS = ("MEMORY.md", "SOUL.md", "USER.md")
MANIFEST = "memoryhub.json"
DOCUMENT_INFO = "documents.jsonl"
FORMAT, VERSION = "memoryhub", 1
PATHS = re.compile(  # of the files of an export
    r"sessions/[^/]+-\d{5,}\.jsonl|documents/.+|documents\.jsonl"
    r"|(history|knowledge|observations|key-values|cached-responses|terms)\.jsonl"
)
SETTINGS = ("memory_window", "max_tokens", "max_entries", "recent_window", "min_entries_to_compress")


@dataclass(frozen=True)
class DocumentInfo:
    """What a document's text doesn't tell: a line of ``documents.jsonl``. Names not in ``DOCUMENTS`` have one."""

    name: str
    separator: str = ""
    chars: int | None = None
    byte_count: int | None = None
    lines: int | None = None
    is_instructions: bool = False


def document_lines(documents: Iterable[DocumentRecord]) -> Iterator[str]:
    """Yield the lines of ``documents.jsonl``."""
    for document in documents:
        limit = document.limit or DocumentLimit()
        sizes = (limit.chars, limit.byte_count, limit.lines)
        info = DocumentInfo(document.name, document.separator, *sizes, document.is_instructions)
        if document.name not in DOCUMENTS or info != DocumentInfo(document.name):
            yield _line(to_row(info))


def manifest(snapshot: Snapshot) -> str:
    """Return memoryhub.json: the format, the program that the memory came from, and the workspace's settings."""
    value = {
        "format": FORMAT,
        "version": VERSION,
        "program": snapshot.program,
        "program_version": snapshot.program_version,
        "settings": {name: snapshot.settings[name] for name in SETTINGS if name in snapshot.settings},
    }
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def session_lines(session: SessionRecord, entries: Iterable[EntryRecord]) -> Iterator[str]:
    """Yield the lines of one epoch of a session: itself, its summaries, its entries in order."""
    yield _line({"session": to_row(session, exclude=("entries", "summaries"))})
    for summary in session.summaries:
        yield _line({"summary": to_row(summary)})
    for entry in entries:
        yield _line({"entry": to_row(entry)})


def lines(records: Iterable[object], path: str) -> Iterator[str]:
    """Yield records as lines. ``path``: the file that they are written to, which is omitted from history entries."""
    for record in records:
        row = to_row(record)
        if row.get("file") == path:
            del row["file"]
        yield _line(row)


def graph_lines(terms: Iterable[dict[str, Any]], meta: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a semantic graph: its metadata, then its terms."""
    is_first = True
    for term in terms:
        if is_first:
            yield _line({"graph": meta})
        is_first = False
        packed = base64.b64encode(vectors.pack(term["embedding"])).decode()
        yield _line({"term": term | {"embedding": packed}})


def to_row(record: Any, exclude: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a record as JSON values, without fields that have their default value."""
    row: dict[str, Any] = {}
    for name, default in _defaults(record.__class__):
        value = getattr(record, name)
        if name in exclude or (value == default and type(value) is type(default)):
            continue
        row[name] = value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
    return row


@cache
def _defaults(kind: type[Any]) -> list[tuple[str, Any]]:
    return [
        (field.name, field.default if field.default_factory is MISSING else field.default_factory())
        for field in fields(kind)
    ]


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"
