"""Read Grip's folders."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Any

from memoryhub.lib.files.safe_folder import Folder, UnreadableFile, join_path
from memoryhub.lib.json_numbers import with_spellings
from memoryhub.lib.layouts.documents import (
    EXCERPT_BYTES,
    empty_file,
    history_record,
    read_document,
    time_problems,
    unread_file,
)
from memoryhub.lib.layouts.entries import NoEntry, read_message
from memoryhub.lib.layouts.json_file import JsonFile, decode_file, open_json
from memoryhub.lib.layouts.problem_counts import counted
from memoryhub.lib.layouts.records import (
    KEPT_IN_PLACE,
    REPAIRED,
    UNKNOWN_RECORDS,
    CachedResponseRecord,
    DetectedLayout,
    EntryRecord,
    FileRead,
    HistoryLog,
    KnowledgeRecord,
    Problem,
    SessionRecord,
    unknown_record,
)
from memoryhub.lib.layouts.times import read_epoch, read_time
from memoryhub.lib.validation import brief, decode_utf8, json_text

CATEGORIES = ("user_preference", "project_decision", "system_behavior", "learned_fact", "error_pattern")
TEMPLATE_LINE = "Searchable summary of past conversations."  # below the heading of a new HISTORY.md
SESSION_FIELDS = {"key", "messages", "summary", "created_at", "updated_at"}
_CONTINUED_TIME = re.compile(r"\n(?= *\[\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?: UTC)?\])")
_INDENTED_TIME = re.compile(r"\n (?= *\[\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?: UTC)?\])")
ARCHIVE = re.compile(r"HISTORY\.archive\.\d+\.md")
_ENTRY_START = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC)?\]")


def read(folder: Folder, detected: DetectedLayout, zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield each source file of a Grip folder."""
    sessions = join_path(detected.workspace, "sessions")
    for name in folder.names(sessions):
        path = join_path(sessions, name)
        if name.endswith(".json"):
            yield read_session(folder, path, zone)
        elif name.endswith(".tmp") and folder.is_file(path):
            yield _leftover_file(folder, path)
    memory = join_path(detected.workspace, "memory")
    if folder.exists(join_path(memory, "MEMORY.md")):
        yield read_document(folder, join_path(memory, "MEMORY.md"))
    if history_paths(folder, memory):
        yield _read_history(folder, memory, zone)
    if folder.exists(join_path(memory, "knowledge.json")):
        yield _read_knowledge(folder, join_path(memory, "knowledge.json"))
    cache = join_path(detected.workspace, "state/semantic_cache.json")
    if folder.exists(cache):
        yield _read_cache(folder, cache)


def read_session(folder: Folder, path: str, zone: tzinfo) -> FileRead:
    file = open_json(folder, path, "session")
    if isinstance(file, FileRead):
        return file
    if not isinstance(file.value, dict) or not isinstance(file.value.get("messages"), list):
        return file.rejected("is not a session: it has no list of messages")
    return file.read([_session(path, file.value, zone, file.problems)])


def _session(path: str, value: dict[str, Any], zone: tzinfo, problems: list[Problem]) -> SessionRecord:
    def repaired(what: str, action: str) -> None:
        problems.append(Problem(path, None, what, action, "repaired"))

    key = value.get("key")
    if not isinstance(key, str) or not key:
        key = path.rpartition("/")[2].removesuffix(".json").replace("_", ":", 1)
        repaired("has no key", f"imported as {key}, from the file name")
    extra = {name: item for name, item in value.items() if name not in SESSION_FIELDS}
    summary = value.get("summary")
    if summary is not None and not isinstance(summary, str):
        repaired("the summary is not text", "its JSON is imported")
        extra["summary"] = summary
        summary = json_text(summary)
    unknown: list[Any] = []
    entries = _messages(path, value["messages"], zone, problems, unknown)
    extra |= {UNKNOWN_RECORDS: unknown} if unknown else {}
    created_at = _time(path, value, "created_at", extra, problems)
    updated_at = _time(path, value, "updated_at", extra, problems)
    return SessionRecord(
        key=key,
        entries=entries,
        summary_text=summary or "",
        created_at=created_at,
        updated_at=updated_at,
        extra=with_spellings(extra, {name: item for name, item in value.items() if name != "messages"}),
    )


def _messages(
    path: str, messages: list[Any], zone: tzinfo, problems: list[Problem], unknown: list[Any]
) -> list[EntryRecord]:
    entries: list[EntryRecord] = []
    for index, message in enumerate(messages):
        try:
            entry, repairs = read_message(message, zone)
        except NoEntry as error:
            what = f"messages[{index}] {error.message}"
            problems.append(Problem(path, None, what, KEPT_IN_PLACE, "rejected", json_text(message).encode()[:2000]))
            unknown.append(unknown_record(len(entries), message))
            continue
        entries.append(entry)
        if repairs:
            what = f"messages[{index}]: {'; '.join(repairs)}"
            problems.append(Problem(path, None, what, REPAIRED, "repaired"))
    return entries


def _time(
    path: str, value: dict[str, Any], name: str, extra: dict[str, Any], problems: list[Problem]
) -> datetime | None:
    """Parse seconds since 1970, or ISO 8601; keep a value that an export wouldn't write so in ``extra``."""
    moment = read_time(value.get(name), UTC)
    moment, repair = (moment, "") if moment else read_epoch(value.get(name))
    if moment and moment.timestamp() != value[name] and not repair:
        extra[name] = value[name]  # text, or finer than microseconds
    if repair:
        extra[name] = value[name]
        action = "its value is kept" if moment is None else REPAIRED
        problems.append(Problem(path, None, f"{name} {repair}", action, "repaired"))
    return moment


def _leftover_file(folder: Folder, path: str) -> FileRead:
    size = len(folder.read_bytes(path)[0])
    what = f"is left over from an interrupted save ({size} bytes); the .json file is complete"
    return unread_file(path, what)


def history_paths(folder: Folder, memory: str) -> list[str]:
    """Return the history files in the order of their content: archives by time, then the log."""
    names = [name for name in folder.names(memory) if ARCHIVE.fullmatch(name)]
    log = ["HISTORY.md"] if folder.exists(join_path(memory, "HISTORY.md")) else []
    return [join_path(memory, name) for name in [*names, *log]]


def _read_history(folder: Folder, memory: str, zone: tzinfo) -> FileRead:
    """Read the archives and the log as one text, because a rotation can split an entry."""
    main = join_path(memory, "HISTORY.md")
    if folder.is_unchanged(main):  # a rotation changes the log as well
        return FileRead(main, "history", None, is_skipped=True)
    problems: list[Problem] = []
    lines: list[tuple[str, str]] = []
    info = None
    for path in history_paths(folder, memory):
        try:
            raw, info = folder.read_bytes(path)
        except UnreadableFile as error:
            problems.append(Problem(path, None, error.message, "not read", "rejected"))
            continue
        text, repair = decode_utf8(raw)
        if repair:
            problems.append(Problem(path, None, repair, "imported", "repaired"))
        lines += [(line.removesuffix("\r"), path) for line in text.removesuffix("\n").split("\n")]
    if problems and not lines:
        return FileRead(main, "history", None, problems=problems)
    log = _history_log(lines, main, zone)
    if preamble := [line for line in str(log.extra.get("preamble", "")).split("\n") if _is_text(line)]:
        one, more = "has 1 line before its first entry", "has {} lines before its first entry"
        what = counted(len(preamble), one, more)
        problems.append(
            Problem(
                main,
                None,
                what,
                "not imported; exports for Grip contain them",
                "ignored",
                "\n".join(preamble).encode()[:EXCERPT_BYTES],
            )
        )
    if not log.entries and info:
        empty = empty_file(main, "history", info)
        return replace(empty, problems=[*problems, *empty.problems])
    problems += [problem for entry in log.entries for problem in time_problems(entry, entry.file)]
    return FileRead(main, "history", info, [log], problems)


def _history_log(lines: list[tuple[str, str]], main: str, zone: tzinfo) -> HistoryLog:
    preamble: list[str] = []
    entries: list[tuple[list[str], str]] = []
    for line, path in lines:
        if _ENTRY_START.match(line):
            entries.append(([line], path))
        elif entries:
            entries[-1][0].append(line)
        else:
            preamble.append(line)
    records = [
        history_record(_INDENTED_TIME.sub("\n", "\n".join(text)), path, zone, is_archived=path != main)
        for text, path in entries
    ]
    return HistoryLog(records, {"preamble": "\n".join(preamble)} if preamble else {})


def _is_text(line: str) -> bool:
    """Return whether a line before the first entry is neither a heading nor from the program's template."""
    return bool(line.strip()) and not line.startswith("#") and line.strip() != TEMPLATE_LINE


def escape_times(content: str) -> str:
    """Indent lines of a history entry that would start another one. Reading removes the space."""
    return _CONTINUED_TIME.sub("\n ", content)


def content_id(category: str, content: str) -> str:
    """Return Grip's id of a knowledge entry: 16 hex digits of the SHA-256 of ``category:content``, lower-cased."""
    return hashlib.sha256(f"{category}:{content.strip().lower()}".encode()).hexdigest()[:16]


def _read_knowledge(folder: Folder, path: str) -> FileRead:
    file = open_json(folder, path, "knowledge")
    return file if isinstance(file, FileRead) else _knowledge_of(path, file)


def parse_knowledge(path: str, raw: bytes) -> FileRead:
    """Parse the bytes of a knowledge.json."""
    file = decode_file(path, "knowledge", raw, None)
    return file if isinstance(file, FileRead) else _knowledge_of(path, file)


def _knowledge_of(path: str, file: JsonFile) -> FileRead:
    rows = file.value.get("entries") if isinstance(file.value, dict) else file.value
    if not isinstance(rows, list):
        return file.rejected("has no list of entries")
    version = file.value.get("version", 1) if isinstance(file.value, dict) else 1
    if version != 1:
        what = f"has the unknown version {brief(version)}"
        file.problems.append(Problem(path, None, what, "imported as version 1", "noted"))
    records: dict[str, KnowledgeRecord] = {}
    for index, row in enumerate(rows):
        record = _knowledge(path, index, row, file.problems)
        if record and record.content_id in records:
            what = f"entries[{index}] has the same id as an earlier entry: {brief(record.content_id)}"
            file.problems.append(Problem(path, None, what, "skipped", "rejected", json_text(row).encode()[:2000]))
        elif record:
            records[record.content_id] = record
    return file.read(list(records.values()))


def _knowledge(path: str, index: int, row: Any, problems: list[Problem]) -> KnowledgeRecord | None:
    if not isinstance(row, dict) or not isinstance(row.get("content"), str):
        what = f"entries[{index}] has no content"
        problems.append(Problem(path, None, what, "skipped", "rejected", json_text(row).encode()[:2000]))
        return None
    repairs: list[str] = []
    extra = {
        name: item
        for name, item in row.items()
        if name not in ("id", "category", "content", "source", "tags", "created_at", "accessed_at", "access_count")
    }
    category = row.get("category")
    if category not in CATEGORIES:
        repairs.append(f"the category {brief(category)} is unknown; imported as learned_fact")
        extra["category"], category = category, "learned_fact"
    tags = row.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        repairs.append("the tags are not a list of strings; split into words")
        extra["tags"], tags = tags, str(tags).replace(",", " ").split() if tags else []
    identity = row.get("id")
    if not isinstance(identity, str) or not identity:
        identity = content_id(category, row["content"])
        repairs.append(f"has no id; imported as {identity}")
    count = row.get("access_count", 0)
    if type(count) is not int or not 0 <= count < 2**31:
        repairs.append("access_count is invalid; imported as 0")
        extra["access_count"], count = count, 0
    source = row.get("source", "")
    if not isinstance(source, str):
        repairs.append("the source is not text; it is kept as an extra field")
        extra["source"], source = source, ""
    if repairs:
        problems.append(Problem(path, None, f"entries[{index}]: {'; '.join(repairs)}", REPAIRED, "repaired"))
    created_at = _time(path, row, "created_at", extra, problems)
    accessed_at = _time(path, row, "accessed_at", extra, problems)
    return KnowledgeRecord(
        content_id=identity,
        category=category,
        content=row["content"],
        source=source,
        tags=tags,
        access_count=count,
        created_at=created_at,
        accessed_at=accessed_at,
        extra=with_spellings(extra, row),
    )


def _read_cache(folder: Folder, path: str) -> FileRead:
    file = open_json(folder, path, "cache")
    if isinstance(file, FileRead):
        return file
    if not isinstance(file.value, dict):
        return file.rejected("is not an object of cached responses")
    records = [_cached(path, key, row, file.problems) for key, row in file.value.items()]
    return file.read([record for record in records if record])


def _cached(path: str, key: str, row: Any, problems: list[Problem]) -> CachedResponseRecord | None:
    if not isinstance(row, dict) or not isinstance(row.get("response"), str):
        what = f"the entry {key[:16]} has no response"
        problems.append(Problem(path, None, what, "skipped", "rejected", json_text(row).encode()[:2000]))
        return None
    known = ("response", "model", "created_at", "accessed_at", "message_preview")
    extra = {name: item for name, item in row.items() if name not in known}
    texts = {name: row.get(name, "") for name in ("model", "message_preview")}
    for name, text in texts.items():
        if not isinstance(text, str) or (name == "model" and len(text) > 200):
            what = f"the entry {key[:16]} has a {name} that is not a short text"
            problems.append(Problem(path, None, what, "kept as an extra field", "noted"))
            extra[name], texts[name] = text, ""
    created_at = _time(path, row, "created_at", extra, problems)
    accessed_at = _time(path, row, "accessed_at", extra, problems)
    return CachedResponseRecord(
        key=key,
        model=texts["model"],
        response=row["response"],
        preview=texts["message_preview"],
        created_at=created_at,
        accessed_at=accessed_at,
        extra=with_spellings(extra, row),
    )
