"""Read MemoryHub's own export format (written by ``hub.py``). A folder is untrusted: every value is validated."""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, replace
from datetime import UTC, tzinfo
from functools import partial
from typing import Any, TypeVar, cast, get_args

from memoryhub.lib import vectors
from memoryhub.lib.errors import Invalid
from memoryhub.lib.files.safe_folder import MAX_LINES_FILE_BYTES, Folder, Stream, UnreadableFile, join_path
from memoryhub.lib.layouts import grip
from memoryhub.lib.layouts.documents import EXCERPT_BYTES, empty_file, read_document, unread_file, unreadable_file
from memoryhub.lib.layouts.entries import MAX_ID_LENGTH, ROLE_LENGTH, NoEntry, rejection_reason
from memoryhub.lib.layouts.grid import layout as grid
from memoryhub.lib.layouts.hub import DOCUMENT_INFO, DOCUMENTS, FORMAT, MANIFEST, SETTINGS, VERSION, DocumentInfo
from memoryhub.lib.layouts.json_file import load_json
from memoryhub.lib.layouts.records import (
    REPAIRED,
    CachedResponseRecord,
    DetectedLayout,
    DocumentLimit,
    EntryKind,
    EntryRecord,
    FileKind,
    FileRead,
    GraphRecord,
    HistoryLog,
    HistoryRecord,
    Item,
    KeyValueRecord,
    KnowledgeRecord,
    ObservationRecord,
    Problem,
    SessionRecord,
    SummaryRecord,
    TermRecord,
)
from memoryhub.lib.layouts.times import read_time
from memoryhub.lib.validation import BadJSON, brief, decode_json

R = TypeVar("R")
PROGRAMS = (
    "nanobot",
    "grip",
    "grid",
    "agterm",
    "claude-code",
    "codex",
    "gemini-cli",
    "openclaw",
    "opencode",
    "hermes",
    "server-memory",
    "basic-memory",
    "memory-bank",
)
MAX_INT = 2**31 - 1
MAX_EPOCHS = 100_000
MAX_NAME_LENGTH, MAX_SEPARATOR_LENGTH = 200, 16  # of documents
METHODS = ("llm", "heuristic", "imported")
LENGTHS = {"role": ROLE_LENGTH, "model": 200, "provider": 100}
SHORT = ("tool_call_id", "source_id", "summary_source_id", "parent_key", "parent_call_id", "forked_from")
_HASH = re.compile(r"[0-9a-f]{64}")
CHOICES = {
    (EntryRecord, "kind"): get_args(EntryKind),
    (KnowledgeRecord, "category"): grip.CATEGORIES,
    (ObservationRecord, "category"): grid.CATEGORIES,
}
REQUIRED = (
    (EntryRecord, "role"),
    (KnowledgeRecord, "content_id"),
    (ObservationRecord, "uid"),
    (SummaryRecord, "source_id"),
)
IDS = ("content_id", "uid", "key", "text", "source_id")  # of rows, terms and summaries
WRAPPED = (SessionRecord, SummaryRecord, EntryRecord, GraphRecord, TermRecord)  # lines {"entry": {…}} and so on
ROWS: list[tuple[str, FileKind, type[Any]]] = [
    ("knowledge.jsonl", "knowledge", KnowledgeRecord),
    ("observations.jsonl", "observations", ObservationRecord),
    ("key-values.jsonl", "key_values", KeyValueRecord),
    ("cached-responses.jsonl", "cache", CachedResponseRecord),
]


def find(folder: Folder) -> DetectedLayout | None:
    """Return the layout described by memoryhub.json, or None if there is none. Raises Invalid for another version."""
    value = load_json(folder, MANIFEST)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        return None
    if value.get("version") != VERSION:
        what = f"{MANIFEST} has the version {brief(value.get('version'))}; this hub reads version {VERSION}."
        raise Invalid(what, code="unknown_version")
    program, version, raw = value.get("program"), value.get("program_version"), value.get("settings")
    values = raw if isinstance(raw, dict) else {}
    settings: dict[str, int | float | bool | str] = {
        name: values[name] for name in SETTINGS if type(values.get(name)) is int and 0 < values[name] <= 10**8
    }
    if settings.get("recent_window", 10) > settings.get("max_entries", 100):  # type: ignore[operator]
        settings = {}
    return DetectedLayout(
        "hub",
        version[:100] if isinstance(version, str) else "",
        settings=settings,
        program=program if program in PROGRAMS else "",
    )


def read(folder: Folder, _found: DetectedLayout, _zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield each source file of an export. All its times have a time zone."""
    for name in folder.names("sessions"):
        if name.endswith(".jsonl"):
            yield _read_session(folder, join_path("sessions", name))
    yield from _read_documents(folder)
    yield from _read_rows(folder)


def _read_documents(folder: Folder) -> Iterator[FileRead]:
    infos = {name: DocumentInfo(name) for name in DOCUMENTS}
    if folder.exists(DOCUMENT_INFO):
        file = _read_lines(folder, DOCUMENT_INFO, "document", _document_info)
        infos |= {info.name: info for info in cast("list[DocumentInfo]", file.items)}
        yield replace(file, items=[])
    for info in infos.values():
        if folder.exists(join_path("documents", info.name)):
            yield read_document(folder, join_path("documents", info.name), **_attributes(info))
    for file_or_link in folder.files("documents"):
        path = file_or_link if isinstance(file_or_link, str) else ""
        if path and path.removeprefix("documents/") not in infos:
            yield unread_file(path, "is not a document that MemoryHub knows")


def _document_info(row: Any) -> DocumentInfo:
    info = from_row(DocumentInfo, row)
    is_path = all(part not in ("", ".", "..") for part in info.name.split("/"))
    separator = info.separator
    is_separator = not separator or (len(separator) <= MAX_SEPARATOR_LENGTH and separator.split() == [separator])
    if not is_path or len(info.name) > MAX_NAME_LENGTH or not is_separator:
        raise NoEntry("has an invalid name or separator")
    return info


def _attributes(info: DocumentInfo) -> dict[str, Any]:
    limit = DocumentLimit(info.chars, info.byte_count, info.lines)
    return {
        "name": info.name,
        "separator": info.separator,
        "limit": None if limit == DocumentLimit() else limit,
        "is_instructions": info.is_instructions,
    }


def _read_rows(folder: Folder) -> Iterator[FileRead]:
    if folder.exists("history.jsonl"):
        file = _read_lines(folder, "history.jsonl", "history", _history)
        entries = [item for item in cast("list[Any]", file.items) if isinstance(item, HistoryRecord)]
        yield replace(file, items=[HistoryLog(entries)] if entries else [])
    for path, kind, record in ROWS:
        if folder.exists(path):
            yield _without_duplicates(_read_lines(folder, path, kind, partial(from_row, record)))
    if folder.exists("terms.jsonl"):
        yield _read_graph(folder, "terms.jsonl")


def _without_duplicates(file: FileRead) -> FileRead:
    """Keep the first of several rows with the same id or key, and report the others."""
    problems = list(file.problems)
    return replace(file, items=_first_of_each(file.path, file.items, problems), problems=problems)


def _first_of_each(path: str, items: Sequence[R], problems: list[Problem]) -> list[R]:
    kept: dict[str, R] = {}
    for item in items:
        name = next(str(getattr(item, field)) for field in IDS if hasattr(item, field))
        if name in kept:
            what = f"has {brief(name)} more than once"
            problems.append(Problem(path, None, what, "the first is imported", "rejected"))
        kept.setdefault(name, item)
    return list(kept.values())


def from_row(record: type[R], row: Any, **overrides: Any) -> R:
    """Return a record from the values of ``hub.to_row``. Raises NoEntry, naming the invalid field."""
    if not isinstance(row, dict):
        raise NoEntry("is not an object")
    values: dict[str, Any] = {}
    for field in fields(record):  # type: ignore[arg-type]
        if field.name in overrides:
            continue
        if field.name in row:
            values[field.name] = _value(record, field.name, str(field.type), row[field.name])
        elif field.type == "datetime | None":
            values[field.name] = None
        elif field.default is MISSING and field.default_factory is MISSING:
            raise NoEntry(f"has no {field.name}")
    return record(**values, **overrides)


def _value(record: type[Any], name: str, kind: str, value: Any) -> Any:
    if kind == "datetime | None":
        value = read_time(value, UTC)
        is_valid = value is not None
    elif kind == "list[ToolCall]":
        is_valid = isinstance(value, list) and all(map(_is_tool_call, value))
    else:
        is_valid = _VALIDATORS[kind](value) and _is_allowed(record, name, value)
    if not is_valid:
        raise NoEntry(f"has an invalid {name}")
    return value


_VALIDATORS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "EntryKind": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: type(value) is int and 0 <= value <= MAX_INT,
    "int | None": lambda value: type(value) is int and 0 <= value <= MAX_INT,
    "list[str]": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "dict[str, Any]": lambda value: isinstance(value, dict),
}


def _is_allowed(record: type[Any], name: str, value: Any) -> bool:
    if choices := CHOICES.get((record, name)):
        return value in choices
    if name == "source_hash":
        return bool(_HASH.fullmatch(value))
    if name == "method":
        return value in METHODS
    if name == "epoch":
        return bool(value < MAX_EPOCHS)
    max_length = MAX_ID_LENGTH if name in SHORT else LENGTHS.get(name)
    is_present = bool(value) or (record, name) not in REQUIRED
    return is_present and (max_length is None or len(value) <= max_length)


def _is_tool_call(call: Any) -> bool:
    if not isinstance(call, dict) or call.keys() != {"id", "type", "function"}:
        return False
    function = call["function"]
    is_function = isinstance(function, dict) and function.keys() == {"name", "arguments"}
    return is_function and all(isinstance(text, str) for text in (call["id"], call["type"], *function.values()))


def _history(row: Any) -> HistoryRecord:
    record = from_row(HistoryRecord, row, source_hash="")
    return record if record.file else replace(record, file="history.jsonl")


def _read_lines(folder: Folder, path: str, kind: FileKind, add: Callable[[Any], Any]) -> FileRead:
    """Read a file line by line. Invalid lines are reported and skipped."""
    problems: list[Problem] = []
    items: list[Item] = []

    def parse(stream: Stream) -> None:
        problems.clear()
        items.clear()
        for number, raw in stream.lines():
            is_line = raw is None or raw.strip()
            if is_line and (item := _read_line(path, number, raw, add, problems)) is not None:
                items.append(item)

    try:
        _, info = folder.read(path, parse, limit=MAX_LINES_FILE_BYTES)
    except UnreadableFile as error:
        return unreadable_file(path, kind, error)
    if not items and not problems:
        return empty_file(path, kind, info)
    return FileRead(path, kind, info, items, problems)


def _read_line(
    path: str, number: int, raw: bytes | None, parse: Callable[[Any], Any], problems: list[Problem]
) -> Any:
    try:
        if raw is None:
            raise NoEntry("is longer than 8 MB")
        decoded = decode_json(raw.decode("utf-8"))
        item = parse(decoded.value)
    except (UnicodeDecodeError, BadJSON, NoEntry) as error:
        problems.append(
            Problem(path, number, rejection_reason(error), "skipped", "rejected", (raw or b"")[:EXCERPT_BYTES])
        )
        return None
    repairs = dict.fromkeys([*decoded.repairs, *_unknown_fields(item, decoded.value)])
    if repairs:
        problems.append(Problem(path, number, "; ".join(repairs), REPAIRED, "repaired"))
    return item


def _unknown_fields(item: Any, row: dict[str, Any]) -> list[str]:
    values = next(iter(row.values())) if isinstance(item, WRAPPED) else row
    unknown = sorted(values.keys() - {field.name for field in fields(item)})
    return [f"it has no place for {brief(', '.join(unknown))}"] if unknown else []


def _read_session(folder: Folder, path: str) -> FileRead:
    file = _read_lines(folder, path, "session", _session_part)
    parts: list[Any] = list(file.items)
    heads = [part for part in parts if isinstance(part, SessionRecord)]
    if file.info is None or file.is_empty:
        return file
    if len(heads) != 1:
        problem = Problem(path, None, "has no session line, or more than one", "skipped", "rejected")
        return replace(file, items=[], problems=[*file.problems, problem])
    problems = list(file.problems)
    entries = [part for part in parts if isinstance(part, EntryRecord)]
    summaries = _first_of_each(path, [part for part in parts if isinstance(part, SummaryRecord)], problems)
    names = {"", *(summary.source_id for summary in summaries)}
    linked = [
        entry if entry.summary_source_id in names else replace(entry, summary_source_id="") for entry in entries
    ]
    unlinked = sum(entry.summary_source_id not in names for entry in entries)
    if unlinked:
        what = f"{unlinked:,} entries refer to summaries that are not in the file"
        problems.append(Problem(path, None, what, "the links are dropped", "repaired"))
    if heads[0].pointer > len(entries):
        what = f"the pointer is {heads[0].pointer:,}, with {len(entries):,} entries in the file"
        problems.append(Problem(path, None, what, f"imported as {len(entries):,}", "repaired"))
    session = replace(heads[0], entries=linked, summaries=summaries, pointer=min(heads[0].pointer, len(entries)))
    return replace(file, items=[session], problems=problems)


def _session_part(row: Any) -> Any:
    kind, value = next(iter(row.items())) if isinstance(row, dict) and len(row) == 1 else ("", None)
    if kind == "session":
        return from_row(SessionRecord, value, entries=[], summaries=[])
    if kind == "summary":
        return from_row(SummaryRecord, value)
    if kind == "entry":
        return from_row(EntryRecord, value)
    raise NoEntry("is not a session, summary or entry")


def _read_graph(folder: Folder, path: str) -> FileRead:
    file = _read_lines(folder, path, "graph", _graph_part)
    parts: list[Any] = list(file.items)
    heads = [part for part in parts if isinstance(part, GraphRecord)]
    if not parts:
        return file
    if not heads:
        problem = Problem(path, None, "has no graph line", "skipped", "rejected")
        return replace(file, items=[], problems=[*file.problems, problem])
    problems = list(file.problems)
    problems += [Problem(path, None, "is another graph line", "skipped", "rejected") for _ in heads[1:]]
    terms = _first_of_each(path, [part for part in parts if isinstance(part, TermRecord)], problems)
    return replace(file, items=[replace(heads[0], terms=terms)], problems=problems)


def _graph_part(row: Any) -> Any:
    kind, value = next(iter(row.items())) if isinstance(row, dict) and len(row) == 1 else ("", None)
    if kind == "graph":
        return from_row(GraphRecord, value, terms=[])
    if kind != "term" or not isinstance(value, dict):
        raise NoEntry("is not a graph or term")
    try:
        packed = base64.b64decode(str(value.get("embedding", "")), validate=True)
        embedding = vectors.unpack(packed)
    except (binascii.Error, ValueError, struct.error) as error:
        raise NoEntry("has an invalid embedding") from error
    if not all(map(math.isfinite, embedding)):
        raise NoEntry("has an invalid embedding")
    return from_row(TermRecord, value, embedding=embedding)
