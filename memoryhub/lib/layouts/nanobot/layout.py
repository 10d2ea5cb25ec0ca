"""Read nanobot's folders, versions 0.1 and 0.3."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any

from memoryhub.lib.files.safe_folder import MAX_LINES_FILE_BYTES, Folder, Stream, UnreadableFile, join_path
from memoryhub.lib.json_numbers import SPELLINGS, with_spellings
from memoryhub.lib.layouts.documents import EXCERPT_BYTES, empty_file, read_document, unreadable_file
from memoryhub.lib.layouts.entries import NoEntry, rejection_reason
from memoryhub.lib.layouts.file_names import encoded_name
from memoryhub.lib.layouts.nanobot.history import read_history
from memoryhub.lib.layouts.nanobot.messages import is_compaction, read_entry
from memoryhub.lib.layouts.problem_counts import counted
from memoryhub.lib.layouts.records import (
    REPAIRED,
    UNKNOWN_RECORDS,
    DetectedLayout,
    EntryRecord,
    FileRead,
    Problem,
    SessionRecord,
    unknown_record,
)
from memoryhub.lib.layouts.times import naive_time, read_moment
from memoryhub.lib.validation import BadJSON, brief, clean_text, decode_json, decode_utf8, visible_line

WORKSPACE_ID = re.compile(r"[0-9a-f]{32}")
MAX_UNKNOWN_BYTES = 2**20  # of a session
LEFT_BEHIND = "Left over from an upgrade: nanobot no longer lists or opens this file."
OLD_PLACE = "In the old global folder: nanobot moves it when the session is next used."
METADATA_FIELDS = {"_type", "key", "created_at", "updated_at", "metadata", "last_consolidated"}
CHECKPOINT = ".checkpoint.json"
IN_EXPORTS = "skipped; exports for nanobot contain it"


@dataclass(frozen=True)
class SessionFile:
    """A session file. ``is_encoded``: its name is the base64url of the key. ``note``: a sentence for the user."""

    path: str
    is_encoded: bool = False
    is_visible: bool = True
    note: str = ""


@dataclass
class _Lines:
    """The parsed lines of a session file."""

    entries: list[EntryRecord] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    metadata: dict[str, Any] | None = None
    count: int = 0  # of lines that aren't blank
    rejected_at: list[int] = field(default_factory=list)  # indexes of messages in the file that aren't entries
    unknown: list[Any] = field(default_factory=list)  # [number of entries before it, record]
    unknown_bytes: int = 0
    private_count: int = 0  # records of provider state
    compaction_count: int = 0


def session_files(folder: Folder, detected: DetectedLayout) -> list[SessionFile]:
    """Return the session files, those that the agent doesn't see first: of a session, they are the earlier epochs."""
    hidden: list[SessionFile] = []
    visible: list[SessionFile] = []
    current = _current_folders(folder, detected)
    inner, outer = join_path(detected.workspace, "sessions"), join_path(detected.home, "sessions")
    for parent in dict.fromkeys([outer, inner]):
        for name in _jsonl(folder, parent):
            note = OLD_PLACE if parent == outer != inner else ""
            file = SessionFile(join_path(parent, name), is_visible=not current, note=LEFT_BEHIND if current else note)
            (hidden if current else visible).append(file)
    for parent in current:
        for name in _jsonl(folder, parent):
            is_encoded = decoded_key(name.removesuffix(".jsonl")) is not None
            file = SessionFile(join_path(parent, name), is_encoded, is_encoded, "" if is_encoded else LEFT_BEHIND)
            (visible if is_encoded else hidden).append(file)
    return hidden + visible


def _jsonl(folder: Folder, parent: str) -> list[str]:
    return [name for name in folder.names(parent) if name.endswith(".jsonl")]


def _current_folders(folder: Folder, detected: DetectedLayout) -> list[str]:
    """Return the folders in which nanobot 0.3 keeps this workspace's sessions."""
    parents = [join_path(detected.home, "sessions")]
    return [
        join_path(parent, name)
        for parent in parents
        for name in folder.names(parent)
        if WORKSPACE_ID.fullmatch(name) and folder.is_folder(join_path(parent, name))
    ]


def decoded_key(stem: str) -> str | None:
    """Return the key that a file name of nanobot 0.3 encodes (base64url without padding), or None."""
    try:
        key = base64.b64decode(stem + "=" * (-len(stem) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return key if key.isprintable() and (":" in key or key == "heartbeat") else None


def read(folder: Folder, detected: DetectedLayout, zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield each source file of a nanobot folder: sessions, documents, history."""
    for file in session_files(folder, detected):
        yield read_session(folder, file, zone)
    yield from read_documents(folder, detected)
    yield from read_history(folder, join_path(detected.workspace, "memory"), zone)


def read_documents(folder: Folder, detected: DetectedLayout) -> Iterator[FileRead]:
    """Yield the memory documents."""
    seen: dict[str, str] = {}
    for parent in ("memory/MEMORY.md", "SOUL.md", "USER.md", "memory/SOUL.md", "memory/USER.md"):
        path, name = join_path(detected.workspace, parent), parent.rpartition("/")[2]
        if not folder.exists(path):
            continue
        if name in seen:
            what = f"is a second {name}; {seen[name]} is used"
            yield FileRead(path, "other", None, problems=[Problem(path, None, what, "skipped", "ignored")])
            continue
        seen[name] = path
        yield read_document(folder, path)


def read_session(folder: Folder, file: SessionFile, zone: tzinfo) -> FileRead:
    """Read a session file. Invalid lines are reported and skipped."""
    checkpoint = file.path.removesuffix(".jsonl") + CHECKPOINT
    has_checkpoint = folder.exists(checkpoint)
    try:
        lines, info = folder.read(
            file.path,
            lambda stream: _read_lines(stream, file.path, zone),
            limit=MAX_LINES_FILE_BYTES,
            even_if_unchanged=has_checkpoint,
        )
    except UnreadableFile as error:
        return unreadable_file(file.path, "session", error)
    if not lines.count:
        return empty_file(file.path, "session", info)
    record = _session(file, lines, zone)
    if has_checkpoint:
        record = _with_checkpoint(folder, checkpoint, record, lines.problems)
    return FileRead(
        file.path, "session", info, [record], lines.problems, note=file.note, always_reread=has_checkpoint
    )


def _read_lines(stream: Stream, path: str, zone: tzinfo) -> _Lines:
    lines = _Lines()
    for number, raw in stream.lines():
        if raw is None:
            lines.count += 1
            lines.rejected_at.append(len(lines.entries) + len(lines.rejected_at))
            lines.problems.append(Problem(path, number, "the line is longer than 8 MB", "skipped", "rejected"))
        elif raw.strip():
            lines.count += 1
            _read_line(lines, path, number, raw, zone)
    if lines.private_count:
        one = "has 1 record of provider state, which is private to the program"
        more = "has {} records of provider state, which are private to the program"
        what = counted(lines.private_count, one, more)
        lines.problems.append(Problem(path, None, what, "left out", "ignored"))
    if lines.compaction_count:
        one, more = "has 1 record that marks a compaction", "has {} records that mark compactions"
        what = counted(lines.compaction_count, one, more)
        lines.problems.append(Problem(path, None, what, IN_EXPORTS, "ignored"))
    return lines


def _read_line(lines: _Lines, path: str, number: int, raw: bytes, zone: tzinfo) -> None:
    value: Any = None
    try:
        decoded = decode_json(raw.decode("utf-8"), keep_spelling=True)
        value = decoded.value
        repairs = decoded.repairs + _add_record(lines, value, len(raw), zone)
    except (UnicodeDecodeError, BadJSON, NoEntry) as error:
        action = _keep_unknown(lines, value, len(raw))
        problem = Problem(path, number, rejection_reason(error), action, "rejected", raw[:EXCERPT_BYTES])
        lines.problems.append(problem)
    else:
        if repairs:
            what = "; ".join(dict.fromkeys(repairs))
            lines.problems.append(Problem(path, number, what, REPAIRED, "repaired"))


def _keep_unknown(lines: _Lines, value: Any, size: int) -> str:
    """Keep an object that isn't a message, so that an export has it in its place. Return what was done."""
    lines.rejected_at.append(len(lines.entries) + len(lines.rejected_at))
    if not isinstance(value, dict) or lines.unknown_bytes + size > MAX_UNKNOWN_BYTES:
        return "skipped"
    lines.unknown.append(unknown_record(len(lines.entries), value))
    lines.unknown_bytes += size
    return IN_EXPORTS


def _add_record(lines: _Lines, value: Any, size: int, zone: tzinfo) -> list[str]:
    """Add a record to ``lines`` and return descriptions of its repairs. Provider state is only counted.

    As in nanobot, the last of several metadata lines counts. The mark of a compaction isn't an entry: the program
    inserts it before messages that were read, which would then be read again.
    """
    kind = value.get("_type") if isinstance(value, dict) else None
    if kind == "metadata":
        lines.metadata = value
        return []
    if kind == "provider_state":
        lines.private_count += 1
        return []
    if is_compaction(value):
        lines.compaction_count += 1
        _keep_unknown(lines, value, size)
        return []
    entry, repairs = read_entry(value, zone)
    lines.entries.append(entry)
    return repairs


def _session(file: SessionFile, lines: _Lines, zone: tzinfo) -> SessionRecord:
    metadata = lines.metadata or {}
    stem = file.path.rpartition("/")[2].removesuffix(".jsonl")
    if not file.is_visible and encoded_name(clean_text(str(metadata.get("key")))) == stem:
        file = replace(file, is_encoded=True, is_visible=True, note="")
    if lines.metadata is None:
        what = "has no valid metadata line; the key is taken from the file name"
        lines.problems.append(Problem(file.path, 1, what, REPAIRED, "repaired"))
    known = metadata.get("metadata")
    inner = dict(known) if isinstance(known, dict) else {}
    if known is not None and not isinstance(known, dict):
        what = f"metadata is {brief(known)}, not an object"
        lines.problems.append(Problem(file.path, 1, what, "kept as an extra field", "noted"))
    last_summary = inner.get("_last_summary")
    summary = last_summary.get("text") if isinstance(last_summary, dict) else None
    title = inner.get("title")
    extra = {key: value for key, value in metadata.items() if key not in METADATA_FIELDS}
    created_at = _metadata_time(file.path, metadata, "created_at", zone, extra, lines.problems)
    updated_at = _metadata_time(file.path, metadata, "updated_at", zone, extra, lines.problems)
    if known not in (None, {}):
        extra["metadata"] = known
    if lines.unknown:
        extra[UNKNOWN_RECORDS] = lines.unknown
    extra = with_spellings(extra, metadata)
    return SessionRecord(
        key=_key(file, metadata, lines.problems),
        entries=lines.entries,
        pointer=_pointer(file.path, metadata, lines),
        summary_text=summary if isinstance(summary, str) else "",
        title=title if isinstance(title, str) else "",
        created_at=created_at,
        updated_at=updated_at,
        is_visible_to_agent=file.is_visible,
        note=file.note,
        extra=extra,
    )


def _metadata_time(
    path: str, metadata: dict[str, Any], name: str, zone: tzinfo, extra: dict[str, Any], problems: list[Problem]
) -> datetime | None:
    """Parse a time of the metadata. One that isn't in nanobot's own form is kept in ``extra``, for an export."""
    text = metadata.get(name)
    moment = read_moment(text, zone)
    if moment is None and text is not None:
        problems.append(Problem(path, 1, f"{name} is {brief(text)}, not a time", "kept as an extra field", "noted"))
    if text != naive_time(moment, zone):
        extra[name] = text
    return moment


def _key(file: SessionFile, metadata: dict[str, Any], problems: list[Problem]) -> str:
    """Return the key in the metadata, or else the one that the file name encodes (ambiguously in old names)."""
    key = metadata.get("key")
    if isinstance(key, str) and key:
        return key
    if "key" in metadata:
        what = f"the key is {brief(key)}, not text"
        problems.append(Problem(file.path, 1, what, "the key is taken from the file name", "repaired"))
    stem = visible_line(clean_text(file.path.rpartition("/")[2].removesuffix(".jsonl")))
    return (decoded_key(stem) or stem) if file.is_encoded else stem.replace("_", ":", 1)


def _pointer(path: str, metadata: dict[str, Any], lines: _Lines) -> int:
    """Return the number of imported entries before the pointer; 0, with a problem, if its value is invalid."""
    name = "last_archived" if "last_archived" in metadata else "last_consolidated"
    value = metadata.get(name, 0)
    if type(value) is int and 0 <= value <= len(lines.entries) + len(lines.rejected_at):
        return value - sum(index < value for index in lines.rejected_at)
    what = f"{name} is {brief(value)}, with {len(lines.entries)} messages in the file"
    lines.problems.append(Problem(path, 1, what, "imported as 0", "repaired"))
    return 0


def _with_checkpoint(folder: Folder, path: str, record: SessionRecord, problems: list[Problem]) -> SessionRecord:
    """Add the checkpoint of an interrupted turn to its session's extra fields."""
    try:
        raw, _ = folder.read_bytes(path)
        checkpoint = decode_json(decode_utf8(raw)[0], keep_spelling=True).value
    except (UnreadableFile, BadJSON) as error:
        problems.append(Problem(path, None, f"the checkpoint can't be read: {error.message}", "skipped", "rejected"))
        return record
    found = with_spellings({"checkpoint": checkpoint}, {"checkpoint": checkpoint})
    numbers = {**record.extra.get(SPELLINGS, {}), **found.pop(SPELLINGS, {})}
    return replace(record, extra={**record.extra, **found, **({SPELLINGS: numbers} if numbers else {})})
