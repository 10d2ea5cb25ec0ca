"""Read memory documents and history files, whose formats several agents share."""

from __future__ import annotations

import re
from datetime import tzinfo

from memoryhub.lib.layouts.records import DocumentRecord, FileKind, FileRead, HistoryRecord, Problem
from memoryhub.lib.layouts.times import split_prefix
from memoryhub.lib.safe_folder import FileInfo, Folder, UnchangedFile, UnreadableFile
from memoryhub.lib.validation import decode_utf8

_DATED = re.compile(r"\[\d{4}-\d\d-\d\d")
EXCERPT_BYTES = 2000


def unreadable_file(path: str, kind: FileKind, error: UnreadableFile) -> FileRead:
    """Return the FileRead of a file that couldn't be read, or was skipped because it is unchanged."""
    if isinstance(error, UnchangedFile):
        return FileRead(path, kind, None, is_skipped=True)
    return FileRead(path, kind, None, problems=[Problem(path, None, error.message, "not read", "rejected")])


def empty_file(path: str, kind: FileKind, info: FileInfo) -> FileRead:
    """Return the FileRead of an unexpectedly empty file."""
    problem = Problem(path, None, "is empty", "the hub keeps its rows", "held")
    return FileRead(path, kind, info, problems=[problem], is_empty=True)


def read_document(folder: Folder, path: str) -> FileRead:
    """Read a memory document."""
    try:
        raw, info = folder.read_bytes(path)
    except UnreadableFile as error:
        return unreadable_file(path, "document", error)
    return parse_document(path, raw, info)


def parse_document(path: str, raw: bytes, info: FileInfo | None) -> FileRead:
    """Parse a memory document, with line endings as ``\\n``; ``raw`` is kept if the text doesn't reproduce it."""
    text, repair = decode_utf8(raw)
    content = text.replace("\r\n", "\n")
    problems = [Problem(path, None, repair, "imported; the original bytes are kept", "repaired")] if repair else []
    record = DocumentRecord(path.rpartition("/")[2], content, None if content.encode() == raw else raw)
    return FileRead(path, "document", info, [record], problems)


def split_history(text: str) -> list[str]:
    """Split HISTORY.md like nanobot's own upgrade: at blank lines, and before lines that start with a date."""
    chunks: list[list[str]] = [[]]
    for line in text.replace("\r\n", "\n").split("\n"):
        if not line.strip() or _DATED.match(line):
            chunks.append([])
        if line.strip():
            chunks[-1].append(line)
    return ["\n".join(chunk) for chunk in chunks if chunk]


def history_record(text: str, path: str, zone: tzinfo, *, is_archived: bool = False) -> HistoryRecord:
    """Return a history entry without its time prefix."""
    prefix, occurred_at, content = split_prefix(text, zone)
    return HistoryRecord(
        content=content.rstrip(),
        source_hash="",
        occurred_at=occurred_at,
        occurred_at_text=prefix,
        is_archived=is_archived,
        file=path,
    )


def time_problems(record: HistoryRecord, path: str) -> list[Problem]:
    if record.occurred_at is None and record.occurred_at_text:
        what = f"the time {record.occurred_at_text} is invalid"
        return [Problem(path, None, what, "imported; the time is kept as text", "noted")]
    return []


def document_bytes(content: str, like: bytes) -> bytes:
    """Encode a text with the byte order mark and the line endings of the file ``like``."""
    bom = b"\xef\xbb\xbf" if like.startswith(b"\xef\xbb\xbf") else b""
    is_windows = like.count(b"\r\n") * 2 > like.count(b"\n")
    return bom + (content.replace("\n", "\r\n") if is_windows else content).encode()
