"""Read nanobot's history: HISTORY.md of version 0.1, history.jsonl of 0.3."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import Any

from memoryhub.lib.files.safe_folder import MAX_LINES_FILE_BYTES, Folder, Stream, UnreadableFile
from memoryhub.lib.json_numbers import with_spellings
from memoryhub.lib.layouts.documents import (
    EXCERPT_BYTES,
    empty_file,
    history_record,
    split_history,
    time_problems,
    unreadable_file,
)
from memoryhub.lib.layouts.entries import NoEntry, rejection_reason
from memoryhub.lib.layouts.records import (
    KEPT_IN_PLACE,
    REPAIRED,
    UNKNOWN_RECORDS,
    FileRead,
    HistoryLog,
    HistoryRecord,
    Problem,
    text_hash,
    unknown_record,
)
from memoryhub.lib.layouts.times import read_moment
from memoryhub.lib.validation import BadJSON, brief, decode_json, decode_utf8


def read_history(folder: Folder, memory: str, zone: tzinfo) -> Iterator[FileRead]:
    """Read the journal of 0.3 or else the log of 0.1; if there are both, the journal contains the log.

    ``memory``: the path of the folder.
    """
    journal, log = f"{memory}/history.jsonl", f"{memory}/HISTORY.md"
    has_journal = folder.exists(journal)
    if has_journal:
        yield _read_journal(folder, journal, zone)
    elif folder.exists(log):
        yield _read_log(folder, log, zone)
    for path in (log, f"{memory}/HISTORY.md.bak"):
        if has_journal and folder.exists(path):
            what = "was replaced by history.jsonl, which contains its entries"
            yield FileRead(path, "other", None, problems=[Problem(path, None, what, "skipped", "ignored")])


def _read_log(folder: Folder, path: str, zone: tzinfo) -> FileRead:
    try:
        raw, info = folder.read_bytes(path)
    except UnreadableFile as error:
        return unreadable_file(path, "history", error)
    text, repair = decode_utf8(raw)
    problems = [Problem(path, None, repair, "imported", "repaired")] if repair else []
    records = [history_record(chunk, path, zone) for chunk in split_history(text)]
    problems += [problem for record in records for problem in time_problems(record, path)]
    if not records:
        return empty_file(path, "history", info)
    return FileRead(path, "history", info, [HistoryLog(records)], problems)


def _read_journal(folder: Folder, path: str, zone: tzinfo) -> FileRead:
    problems: list[Problem] = []
    unknown: list[Any] = []

    def parse(stream: Stream) -> list[HistoryRecord]:
        problems.clear()
        unknown.clear()
        records: list[HistoryRecord] = []
        for number, raw in stream.lines():
            if raw is not None and not raw.strip():
                continue
            found = _journal_entry(number, raw, path, zone, problems)
            if isinstance(found, HistoryRecord):
                records.append(found)
            elif found is not None:
                unknown.append(unknown_record(text_hash(records[-1].content) if records else "", found))
        return records

    try:
        records, info = folder.read(path, parse, limit=MAX_LINES_FILE_BYTES)
    except UnreadableFile as error:
        return unreadable_file(path, "history", error)
    if not records and not problems:
        return empty_file(path, "history", info)
    log = HistoryLog(records, {UNKNOWN_RECORDS: unknown} if unknown else {})
    return FileRead(path, "history", info, [log] if records or unknown else [], problems)


def _journal_entry(
    number: int, raw: bytes | None, path: str, zone: tzinfo, problems: list[Problem]
) -> HistoryRecord | dict[str, Any] | None:
    """Return an entry, an object that isn't one, or None."""
    value: Any = None
    try:
        if raw is None:
            raise NoEntry("is longer than 8 MB")
        decoded = decode_json(raw.decode("utf-8"), keep_spelling=True)
        value = decoded.value
        if not isinstance(value, dict) or not isinstance(value.get("content"), str):
            raise NoEntry("has no content")
    except (UnicodeDecodeError, BadJSON, NoEntry) as error:
        what = rejection_reason(error)
    else:
        record = _journal_record(value, path, zone)
        odd = [name for name in ("timestamp", "session_key") if name in record.extra]
        repairs = [*decoded.repairs, *(f"{name} is {brief(value[name])}, not text" for name in odd)]
        if record.occurred_at is None and record.occurred_at_text:
            repairs.append(f"the time {brief(record.occurred_at_text)} is invalid; it is kept as text")
        if type(value.get("cursor", 0)) is not int:
            repairs.append(f"the cursor is {brief(value['cursor'])}, not a number")
        if repairs:
            what = "; ".join(dict.fromkeys(repairs))
            problems.append(Problem(path, number, what, REPAIRED, "repaired"))
        return record
    is_kept = isinstance(value, dict)
    action = KEPT_IN_PLACE if is_kept else "skipped"
    problems.append(Problem(path, number, what, action, "rejected", (raw or b"")[:EXCERPT_BYTES]))
    return value if is_kept else None


def _journal_record(value: dict[str, Any], path: str, zone: tzinfo) -> HistoryRecord:
    text, key = value.get("timestamp"), value.get("session_key")
    extra = {name: item for name, item in value.items() if name not in ("content", "timestamp", "session_key")}
    extra |= {} if text is None or isinstance(text, str) else {"timestamp": text}
    extra |= {} if key is None or isinstance(key, str) else {"session_key": key}
    return HistoryRecord(
        content=value["content"],
        source_hash="",
        occurred_at=read_moment(text, zone),
        occurred_at_text=text if isinstance(text, str) else "",
        session_key=key if isinstance(key, str) else "",
        file=path,
        extra=with_spellings(extra, value),
    )
