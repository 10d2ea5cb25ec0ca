"""Read AgTerm's session exports, one session per file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any, get_args

from memoryhub.lib.files.safe_folder import Folder, join_path
from memoryhub.lib.json_numbers import with_spellings
from memoryhub.lib.layouts.entries import INVALID_TIME
from memoryhub.lib.layouts.json_file import open_json
from memoryhub.lib.layouts.message_parts import hash_of
from memoryhub.lib.layouts.records import (
    KEPT_IN_PLACE,
    REPAIRED,
    UNKNOWN_RECORDS,
    DetectedLayout,
    EntryKind,
    EntryRecord,
    FileRead,
    Problem,
    SessionRecord,
    SummaryRecord,
    unknown_record,
)
from memoryhub.lib.layouts.times import read_moment
from memoryhub.lib.validation import brief, json_text

KINDS: tuple[EntryKind, ...] = get_args(EntryKind)
COLUMNS = ("id", "type", "role", "content", "timestamp", "tokenCount", "summaryId")
SUMMARY_FIELDS = ("id", "content", "originalEntryIds", "tokenCount", "originalTokenCount", "createdAt", "timeRange")
MAX_COUNT = 2**31


def read(folder: Folder, detected: DetectedLayout, zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield each export of a folder."""
    for path in export_files(folder, detected.home):
        yield read_export(folder, path, zone)


def export_files(folder: Folder, parent: str) -> list[str]:
    return [join_path(parent, name) for name in folder.names(parent) if name.endswith(".json")]


def read_export(folder: Folder, path: str, zone: tzinfo) -> FileRead:
    """Read an export. Links to missing entries or summaries are reported and dropped."""
    file = open_json(folder, path, "session")
    if isinstance(file, FileRead):
        return file
    if not isinstance(file.value, dict) or not isinstance(file.value.get("entries"), list):
        return file.rejected("is not a session export: it has no list of entries")
    return file.read([_session(path, file.value, zone, file.problems)])


def _session(path: str, value: dict[str, Any], zone: tzinfo, problems: list[Problem]) -> SessionRecord:
    key = value.get("sessionId")
    if not isinstance(key, str) or not key:
        key = path.rpartition("/")[2].removesuffix(".json")
        problems.append(Problem(path, None, "has no sessionId", f"imported as {key}, from the file name", "repaired"))
    rows = value.get("summaries")
    if rows is not None and not isinstance(rows, list):
        what = "the summaries are not a list"
        problems.append(Problem(path, None, what, "skipped", "rejected", json_text(rows).encode()[:2000]))
    summaries = _summaries(path, rows if isinstance(rows, list) else [], zone, problems)
    known = {summary.source_id for summary in summaries}
    entries: list[EntryRecord] = []
    unknown: list[Any] = []
    for index, row in enumerate(value["entries"]):
        entry = _entry(path, index, row, known, zone, problems)
        if entry:
            entries.append(entry)
        else:
            unknown.append(unknown_record(len(entries), row))
    _note_duplicates(path, entries, problems)
    _note_total(path, value.get("totalTokens"), entries, summaries, problems)
    present = {entry.source_id for entry in entries}
    for summary in summaries:
        for missing in [name for name in summary.entry_source_ids if name not in present]:
            what = (
                f"the summary {brief(summary.source_id)} refers to the entry {brief(missing)}, "
                "which is not in the file"
            )
            problems.append(Problem(path, None, what, "the link is dropped", "repaired"))
    extra = {name: item for name, item in value.items() if name not in ("sessionId", "entries", "summaries")}
    extra = with_spellings(extra | ({UNKNOWN_RECORDS: unknown} if unknown else {}), extra)
    times = [entry.occurred_at for entry in entries if entry.occurred_at]
    return SessionRecord(
        key=key,
        entries=entries,
        summaries=summaries,
        created_at=min(times, default=None),
        updated_at=max(times, default=None),
        extra=extra,
    )


def _note_duplicates(path: str, entries: list[EntryRecord], problems: list[Problem]) -> None:
    for name, count in Counter(entry.source_id for entry in entries if entry.source_id).items():
        if count > 1:
            what = f"{count} entries have the id {brief(name)}"
            problems.append(Problem(path, None, what, "imported as separate entries", "noted"))


def _note_total(
    path: str, total: Any, entries: list[EntryRecord], summaries: list[SummaryRecord], problems: list[Problem]
) -> None:
    """Report a total of tokens that is neither the sum of all entries nor that of the active context."""
    whole = sum(entry.token_count or 0 for entry in entries)
    active = sum(entry.token_count or 0 for entry in entries if not entry.summary_source_id)
    active += sum(summary.token_count or 0 for summary in summaries)
    if total is not None and total not in (whole, active):
        what = f"totalTokens is {brief(total)}; its entries have {whole:,} tokens"
        problems.append(Problem(path, None, what, "the entries' own counts are used", "noted"))


def _entry(
    path: str, index: int, row: Any, summaries: set[str], zone: tzinfo, problems: list[Problem]
) -> EntryRecord | None:
    if not isinstance(row, dict) or not isinstance(row.get("content"), str) or row.get("type") not in KINDS:
        what = f"entries[{index}] has no content or no known type"
        problems.append(Problem(path, None, what, KEPT_IN_PLACE, "rejected", json_text(row).encode()[:2000]))
        return None
    extra = {name: item for name, item in row.items() if name not in COLUMNS}
    summary_id = row.get("summaryId")
    if summary_id is not None and not (isinstance(summary_id, str) and summary_id in summaries):
        what = f"entries[{index}] refers to the summary {brief(summary_id)}, which is not in the file"
        problems.append(Problem(path, None, what, "the entry stays in the context", "repaired"))
        extra["summaryId"], summary_id = summary_id, None
    text = row.get("timestamp")
    occurred_at = read_moment(text, zone)
    odd = [
        name for name in ("id", "role", "timestamp", "tokenCount") if name in row and not _is_valid(name, row[name])
    ]
    extra |= {name: row[name] for name in odd}
    if isinstance(text, str) and text and occurred_at is None:
        excerpt = json_text(row).encode()[:2000]
        problems.append(Problem(path, None, INVALID_TIME, REPAIRED, "repaired", excerpt))
    if named := [name for name in odd if row.get(name) is not None and not (name == "timestamp" and occurred_at)]:
        what = f"entries[{index}]: {' and '.join(named)} can't be used"
        problems.append(Problem(path, None, what, "kept as they are", "noted"))
    metadata = row.get("metadata")
    author = metadata.get("author") if isinstance(metadata, dict) else None
    return EntryRecord(
        kind=row["type"],
        role=row["role"] if _is_valid("role", row.get("role")) else "system",
        content=row["content"],
        source_hash=_identity(row),
        name=author if isinstance(author, str) else "",
        occurred_at=occurred_at,
        occurred_at_text=text if isinstance(text, str) else "" if text is None else json_text(text),
        token_count=row["tokenCount"] if _is_valid("tokenCount", row.get("tokenCount")) else None,
        source_id=row["id"] if _is_valid("id", row.get("id")) else "",
        summary_source_id=summary_id or "",
        extra=with_spellings(extra, row),
        source_fields=list(row),
    )


def _identity(row: dict[str, Any]) -> str:
    """Return the hash of an entry without the fields that a later compression changes."""
    stable = {name: item for name, item in row.items() if name not in ("compressed", "summaryId")}
    return hash_of(stable)


def _is_valid(name: str, value: Any) -> bool:
    if name == "tokenCount":
        return type(value) is int and 0 <= value < MAX_COUNT
    return isinstance(value, str) and 0 < len(value) <= (32 if name == "role" else 512)


def _summaries(path: str, rows: list[Any], zone: tzinfo, problems: list[Problem]) -> list[SummaryRecord]:
    records: dict[str, SummaryRecord] = {}
    for index, row in enumerate(rows):
        is_whole = isinstance(row, dict) and isinstance(row.get("content"), str) and _is_valid("id", row.get("id"))
        if not is_whole or row["id"] in records:
            what = f"summaries[{index}] has no content, or no id of its own"
            problems.append(Problem(path, None, what, "skipped", "rejected", json_text(row).encode()[:2000]))
            continue
        records[row["id"]] = _summary(row, zone)
        if odd := _odd_fields(row, records[row["id"]]):
            what = f"summaries[{index}]: {' and '.join(odd)} can't be used"
            problems.append(Problem(path, None, what, "imported without", "repaired"))
    return list(records.values())


def _odd_fields(row: dict[str, Any], record: SummaryRecord) -> list[str]:
    """Return the names of a summary's fields that its record doesn't have, because their values are invalid."""
    ids, span = row.get("originalEntryIds", []), row.get("timeRange", {})
    found = {
        "originalEntryIds": ids == record.entry_source_ids,
        "tokenCount": row.get("tokenCount") == record.token_count,
        "originalTokenCount": row.get("originalTokenCount") == record.original_token_count,
        "createdAt": row.get("createdAt") is None or record.created_at is not None,
        "timeRange": isinstance(span, dict)
        and (span.get("start") is None or record.starts_at is not None)
        and (span.get("end") is None or record.ends_at is not None),
    }
    return [name for name, is_used in found.items() if not is_used and row.get(name) is not None]


def _summary(row: dict[str, Any], zone: tzinfo) -> SummaryRecord:
    ids = row.get("originalEntryIds")
    value = row.get("timeRange")
    time_range: dict[str, Any] = value if isinstance(value, dict) else {}

    def time(text: Any) -> datetime | None:
        return read_moment(text, zone)

    return SummaryRecord(
        source_id=row["id"],
        content=row["content"],
        entry_source_ids=[name for name in ids if isinstance(name, str)] if isinstance(ids, list) else [],
        token_count=row["tokenCount"] if _is_valid("tokenCount", row.get("tokenCount")) else None,
        original_token_count=row["originalTokenCount"]
        if _is_valid("tokenCount", row.get("originalTokenCount"))
        else None,
        created_at=time(row.get("createdAt")),
        starts_at=time(time_range.get("start")),
        ends_at=time(time_range.get("end")),
        extra=with_spellings({name: item for name, item in row.items() if name not in SUMMARY_FIELDS}, row),
    )
