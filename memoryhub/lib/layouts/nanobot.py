"""nanobot's folders, 0.1 and 0.3 (formats.md sections 1 and 2)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Any

from memoryhub.lib.layouts.documents import (
    EXCERPT_BYTES,
    empty,
    history_record,
    read_document,
    split_history,
    time_problem,
    unreadable,
)
from memoryhub.lib.layouts.entries import NoEntry, read_message
from memoryhub.lib.layouts.file_names import encoded_name
from memoryhub.lib.layouts.records import (
    EntryRecord,
    FileRead,
    Found,
    HistoryLog,
    HistoryRecord,
    Problem,
    SessionRecord,
)
from memoryhub.lib.layouts.times import read_time
from memoryhub.lib.safe_folder import MAX_LINES_FILE_BYTES, Folder, Stream, UnreadableFile
from memoryhub.lib.validation import BadJSON, brief, clean_text, decode_json, decode_utf8

WORKSPACE_ID = re.compile(r"[0-9a-f]{32}")
LEFT_BEHIND = "This file was left behind by an upgrade; the program neither lists nor opens it."
OLD_PLACE = "From the older global folder; the program moves it when the session is next used."
METADATA_FIELDS = {"_type", "key", "created_at", "updated_at", "metadata", "last_consolidated"}
CHECKPOINT = ".checkpoint.json"


@dataclass(frozen=True)
class SessionFile:
    """A session's file: whether its name is the base64url of the key, and what to say of it."""

    path: str
    is_encoded: bool = False
    is_visible: bool = True
    note: str = ""


@dataclass
class _Lines:
    """What the lines of one file came to."""

    entries: list[EntryRecord] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    metadata: dict[str, Any] | None = None
    count: int = 0  # lines that hold anything
    rejected_at: list[int] = field(default_factory=list)  # which messages, counted in the file, were not taken


def below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def session_files(folder: Folder, found: Found) -> list[SessionFile]:
    """Return the session files, those that the agent doesn't see first: the visible one is the later epoch."""
    hidden: list[SessionFile] = []
    visible: list[SessionFile] = []
    current = _current_folders(folder, found)
    inner, outer = below(found.workspace, "sessions"), below(found.home, "sessions")
    for place in dict.fromkeys([outer, inner]):
        for name in _jsonl(folder, place):
            note = OLD_PLACE if place == outer != inner else ""
            file = SessionFile(below(place, name), is_visible=not current, note=LEFT_BEHIND if current else note)
            (hidden if current else visible).append(file)
    for place in current:
        for name in _jsonl(folder, place):
            is_encoded = decoded_key(name.removesuffix(".jsonl")) is not None
            file = SessionFile(below(place, name), is_encoded, is_encoded, "" if is_encoded else LEFT_BEHIND)
            (visible if is_encoded else hidden).append(file)
    return hidden + visible


def _jsonl(folder: Folder, place: str) -> list[str]:
    return [name for name in folder.names(place) if name.endswith(".jsonl")]


def _current_folders(folder: Folder, found: Found) -> list[str]:
    """Return the folders in which 0.3 keeps this workspace's sessions."""
    places = [below(found.home, "sessions")]
    return [
        below(place, name)
        for place in places
        for name in folder.names(place)
        if WORKSPACE_ID.fullmatch(name) and folder.is_folder(below(place, name))
    ]


def decoded_key(stem: str) -> str | None:
    """Return the key that a 0.3 file name encodes: base64url without padding. None for another name."""
    try:
        key = base64.b64decode(stem + "=" * (-len(stem) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return key if key.isprintable() and (":" in key or key == "heartbeat") else None


def read(folder: Folder, found: Found, zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield each source file of a nanobot folder: sessions, documents, history."""
    for file in session_files(folder, found):
        yield read_session(folder, file, zone)
    yield from read_documents(folder, found)
    yield from _read_history(folder, found, zone)


def read_documents(folder: Folder, found: Found) -> Iterator[FileRead]:
    """Yield the memory documents that are there."""
    seen: dict[str, str] = {}
    for place in ("memory/MEMORY.md", "SOUL.md", "USER.md", "memory/SOUL.md", "memory/USER.md"):
        path, name = below(found.workspace, place), place.rpartition("/")[2]
        if not folder.exists(path):
            continue
        if name in seen:
            what = f"is a second {name}; {seen[name]} is the one that counts"
            yield FileRead(path, "other", None, problems=[Problem(path, None, what, "left alone", "ignored")])
            continue
        seen[name] = path
        yield read_document(folder, path)


def read_session(folder: Folder, file: SessionFile, zone: tzinfo) -> FileRead:
    """Read one session file; a bad line is a problem, the others are taken."""
    checkpoint = file.path.removesuffix(".jsonl") + CHECKPOINT
    is_under_way = folder.exists(checkpoint)
    try:
        lines, info = folder.read(
            file.path,
            lambda stream: _read_lines(stream, file.path, zone),
            limit=MAX_LINES_FILE_BYTES,
            even_if_unchanged=is_under_way,
        )
    except UnreadableFile as error:
        return unreadable(file.path, "session", error)
    if not lines.count:
        return empty(file.path, "session", info)
    record = _session(file, lines, zone)
    if is_under_way:
        record = _with_checkpoint(folder, checkpoint, record, lines.problems)
    return FileRead(file.path, "session", info, [record], lines.problems, note=file.note, look_again=is_under_way)


def _read_lines(stream: Stream, path: str, zone: tzinfo) -> _Lines:
    lines = _Lines()
    for number, raw in stream.lines():
        if raw is None:
            lines.count += 1
            lines.rejected_at.append(len(lines.entries) + len(lines.rejected_at))
            lines.problems.append(Problem(path, number, "the line is longer than 8 MB", "not taken", "rejected"))
        elif raw.strip():
            lines.count += 1
            _read_line(lines, path, number, raw, zone)
    return lines


def _read_line(lines: _Lines, path: str, number: int, raw: bytes, zone: tzinfo) -> None:
    try:
        decoded = decode_json(raw.decode("utf-8"))
        repairs = decoded.repairs + _take_record(lines, decoded.value, zone)
    except (UnicodeDecodeError, BadJSON, NoEntry) as error:
        lines.rejected_at.append(len(lines.entries) + len(lines.rejected_at))
        problem = Problem(path, number, why_not(error), "not taken", "rejected", raw[:EXCERPT_BYTES])
        lines.problems.append(problem)
    else:
        if repairs:
            what = "; ".join(dict.fromkeys(repairs))
            lines.problems.append(Problem(path, number, what, "taken so", "repaired"))


def _take_record(lines: _Lines, value: Any, zone: tzinfo) -> list[str]:
    """Put a record where it belongs, and return its repairs. What a provider keeps to itself is no memory."""
    kind = value.get("_type") if isinstance(value, dict) else None
    if kind == "metadata" and lines.metadata is None:
        lines.metadata = value
        return []
    if kind == "provider_state":
        return []
    entry, repairs = read_message(value, zone)
    lines.entries.append(entry)
    return repairs


def why_not(error: UnicodeDecodeError | BadJSON | NoEntry) -> str:
    """Say in words why a line was not taken."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} of the line is not UTF-8"
    if isinstance(error, BadJSON):
        return f"column {error.column}: {error.message}"
    return f"the record {error.message}"


def _session(file: SessionFile, lines: _Lines, zone: tzinfo) -> SessionRecord:
    metadata = lines.metadata or {}
    stem = file.path.rpartition("/")[2].removesuffix(".jsonl")
    if not file.is_visible and encoded_name(clean_text(str(metadata.get("key")))) == stem:
        file = replace(file, is_encoded=True, is_visible=True, note="")
    if lines.metadata is None:
        what = "has no readable metadata line; the key comes from the file's name"
        lines.problems.append(Problem(file.path, 1, what, "taken so", "repaired"))
    known = metadata.get("metadata")
    inner = dict(known) if isinstance(known, dict) else {}
    last_summary = inner.get("_last_summary")
    summary = last_summary.get("text") if isinstance(last_summary, dict) else None
    title = inner.get("title")
    extra = {key: value for key, value in metadata.items() if key not in METADATA_FIELDS}
    if known not in (None, {}):
        extra["metadata"] = known
    return SessionRecord(
        key=_key(file, metadata),
        entries=lines.entries,
        pointer=_pointer(file.path, metadata, lines),
        summary_text=summary if isinstance(summary, str) else "",
        title=title if isinstance(title, str) else "",
        created_at=read_time(metadata.get("created_at"), zone),
        updated_at=read_time(metadata.get("updated_at"), zone),
        is_visible_to_agent=file.is_visible,
        note=file.note,
        extra=extra,
    )


def _key(file: SessionFile, metadata: dict[str, Any]) -> str:
    """Return the key: the metadata's is the truth, an encoded name tells it, an old name does so in part."""
    key = metadata.get("key")
    if isinstance(key, str) and key:
        return key
    stem = clean_text(file.path.rpartition("/")[2].removesuffix(".jsonl"))
    return (decoded_key(stem) or stem) if file.is_encoded else stem.replace("_", ":", 1)


def _pointer(path: str, metadata: dict[str, Any], lines: _Lines) -> int:
    """Return how many taken entries lie before the pointer.

    It is 0, with a problem, where the file's value is no whole number from 0 to the file's count of messages.
    """
    name = "last_archived" if "last_archived" in metadata else "last_consolidated"
    value = metadata.get(name, 0)
    if type(value) is int and 0 <= value <= len(lines.entries) + len(lines.rejected_at):
        return value - sum(place < value for place in lines.rejected_at)
    what = f"{name} is {brief(value)}, with {len(lines.entries)} messages in the file"
    lines.problems.append(Problem(path, 1, what, "taken as 0", "repaired"))
    return 0


def _with_checkpoint(folder: Folder, path: str, record: SessionRecord, problems: list[Problem]) -> SessionRecord:
    """Keep a turn under way beside its session: the program had not saved it yet."""
    try:
        raw, _ = folder.read_bytes(path)
        checkpoint = decode_json(decode_utf8(raw)[0]).value
    except (UnreadableFile, BadJSON) as error:
        problems.append(Problem(path, None, f"the checkpoint can't be read: {error.message}", "left out", "rejected"))
        return record
    return replace(record, extra={**record.extra, "checkpoint": checkpoint})


def _read_history(folder: Folder, found: Found, zone: tzinfo) -> Iterator[FileRead]:
    """Read the journal of 0.3, else the log of 0.1; a log beside a journal is already in it."""
    memory = below(found.workspace, "memory")
    journal, log = below(memory, "history.jsonl"), below(memory, "HISTORY.md")
    has_journal = folder.exists(journal)
    if has_journal:
        yield _read_journal(folder, journal, zone)
    elif folder.exists(log):
        yield _read_log(folder, log, zone)
    for path in (log, below(memory, "HISTORY.md.bak")):
        if has_journal and folder.exists(path):
            what = "is the log from before the upgrade; its entries are in history.jsonl"
            yield FileRead(path, "other", None, problems=[Problem(path, None, what, "left alone", "ignored")])


def _read_log(folder: Folder, path: str, zone: tzinfo) -> FileRead:
    try:
        raw, info = folder.read_bytes(path)
    except UnreadableFile as error:
        return unreadable(path, "history", error)
    text, repair = decode_utf8(raw)
    problems = [Problem(path, None, repair, "taken", "repaired")] if repair else []
    records = [history_record(chunk, path, zone) for chunk in split_history(text)]
    problems += [problem for record in records for problem in time_problem(record, path)]
    if not records:
        return empty(path, "history", info)
    return FileRead(path, "history", info, [HistoryLog(records)], problems)


def _read_journal(folder: Folder, path: str, zone: tzinfo) -> FileRead:
    problems: list[Problem] = []

    def parse(stream: Stream) -> list[HistoryRecord]:
        problems.clear()
        records = (
            _journal_entry(number, raw, path, zone, problems)
            for number, raw in stream.lines()
            if raw is None or raw.strip()
        )
        return [record for record in records if record]

    try:
        records, info = folder.read(path, parse, limit=MAX_LINES_FILE_BYTES)
    except UnreadableFile as error:
        return unreadable(path, "history", error)
    if not records and not problems:
        return empty(path, "history", info)
    return FileRead(path, "history", info, [HistoryLog(records)] if records else [], problems)


def _journal_entry(
    number: int, raw: bytes | None, path: str, zone: tzinfo, problems: list[Problem]
) -> HistoryRecord | None:
    try:
        if raw is None:
            raise NoEntry("is longer than 8 MB")
        value = decode_json(raw.decode("utf-8")).value
        if not isinstance(value, dict) or not isinstance(value.get("content"), str):
            raise NoEntry("has no content")
    except (UnicodeDecodeError, BadJSON, NoEntry) as error:
        what = why_not(error)
    else:
        text, key = value.get("timestamp"), value.get("session_key")
        return HistoryRecord(
            content=value["content"],
            source_hash="",
            occurred_at=read_time(text, zone),
            occurred_at_text=text if isinstance(text, str) else "",
            session_key=key if isinstance(key, str) else "",
            file=path,
            extra={k: v for k, v in value.items() if k not in ("content", "timestamp", "session_key")},
        )
    problems.append(Problem(path, number, what, "not taken", "rejected", (raw or b"")[:EXCERPT_BYTES]))
    return None
