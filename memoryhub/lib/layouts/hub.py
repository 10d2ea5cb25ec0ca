"""MemoryHub's own folder: memory as records, one JSON object a line, so that nothing is bent to another's shape.

``memoryhub.json`` names the format and its version. Every other file holds records of ``records.py`` by their field
names, without the fields that have their default: ``sessions/*.jsonl`` (one epoch each: a ``session`` line, then
``summary`` and ``entry`` lines), ``history.jsonl``, ``knowledge.jsonl``, ``observations.jsonl``,
``key-values.jsonl``, ``cached-responses.jsonl``, ``terms.jsonl`` (a ``graph`` line, then ``term`` lines, embeddings
as base64 of float32). ``documents/`` holds memory documents as they are. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from functools import cache
from typing import Any

from memoryhub.lib import vectors
from memoryhub.lib.layouts.records import SessionRecord
from memoryhub.lib.layouts.snapshot import Snapshot

MANIFEST = "memoryhub.json"
FORMAT, VERSION = "memoryhub", 1
SETTINGS = ("memory_window", "max_tokens", "max_entries", "recent_window", "min_entries_to_compress")


def manifest(snapshot: Snapshot) -> str:
    """Return memoryhub.json: the format, which program the memory came from, and the workspace's figures."""
    value = {
        "format": FORMAT,
        "version": VERSION,
        "program": snapshot.program,
        "program_version": snapshot.program_version,
        "settings": {name: snapshot.settings[name] for name in SETTINGS if name in snapshot.settings},
    }
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def session_lines(session: SessionRecord) -> Iterator[str]:
    """Yield one epoch of a session: itself, its summaries, its entries in order."""
    yield _line({"session": row_of(session, but=("entries", "summaries"))})
    for summary in session.summaries:
        yield _line({"summary": row_of(summary)})
    for entry in session.entries:
        yield _line({"entry": row_of(entry)})


def lines(records: Iterable[object], path: str) -> Iterator[str]:
    """Yield records a line each. A history entry that the hub itself wrote has no file."""
    for record in records:
        row = row_of(record)
        if row.get("file") == path:
            del row["file"]
        yield _line(row)


def graph_lines(terms: Iterable[dict[str, Any]], meta: dict[str, Any]) -> Iterator[str]:
    """Yield a semantic graph: what made it, then each term with its embedding and its neighbours in order."""
    is_first = True
    for term in terms:
        if is_first:
            yield _line({"graph": meta})
        is_first = False
        packed = base64.b64encode(vectors.pack(term["embedding"])).decode()
        yield _line({"term": term | {"embedding": packed}})


def row_of(record: Any, but: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a record as plain JSON values, without those that are as they are by default."""
    row: dict[str, Any] = {}
    for name, default in _defaults(record.__class__):
        value = getattr(record, name)
        if name in but or (value == default and type(value) is type(default)):
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
