"""Memory documents and history files, which several agents share."""

from __future__ import annotations

import re
from datetime import tzinfo

from memoryhub.lib.layouts.records import DocumentRecord, FileKind, FileRead, HistoryRecord, Problem
from memoryhub.lib.layouts.times import split_prefix
from memoryhub.lib.safe_folder import FileInfo, Folder, UnchangedFile, UnreadableFile
from memoryhub.lib.validation import decode_utf8

_DATED = re.compile(r"\[\d{4}-\d\d-\d\d")
EXCERPT_BYTES = 2000


def unreadable(path: str, kind: FileKind, error: UnreadableFile) -> FileRead:
    """Return the report of a file that was not read: it can't be, or it is as it was at the last read."""
    if isinstance(error, UnchangedFile):
        return FileRead(path, kind, None, is_skipped=True)
    return FileRead(path, kind, None, problems=[Problem(path, None, error.message, "not read", "rejected")])


def empty(path: str, kind: FileKind, info: FileInfo) -> FileRead:
    """Return the report of a file that holds nothing where there should be something."""
    problem = Problem(path, None, "is empty", "what the hub has is kept", "held")
    return FileRead(path, kind, info, problems=[problem], is_empty=True)


def read_document(folder: Folder, path: str) -> FileRead:
    """Read a memory document, as ``document_of`` has it."""
    try:
        raw, info = folder.read_bytes(path)
    except UnreadableFile as error:
        return unreadable(path, "document", error)
    return document_of(path, raw, info)


def document_of(path: str, raw: bytes, info: FileInfo | None) -> FileRead:
    """Return a memory document. Line ends become ``\\n``; the bytes are kept where the text isn't them."""
    text, repair = decode_utf8(raw)
    content = text.replace("\r\n", "\n")
    problems = [Problem(path, None, repair, "taken; the bytes are kept", "repaired")] if repair else []
    record = DocumentRecord(path.rpartition("/")[2], content, None if content.encode() == raw else raw)
    return FileRead(path, "document", info, [record], problems)


def split_history(text: str) -> list[str]:
    """Cut HISTORY.md as nanobot's own upgrade does: at blank lines, and at lines that begin with a date."""
    chunks: list[list[str]] = [[]]
    for line in text.replace("\r\n", "\n").split("\n"):
        if not line.strip() or _DATED.match(line):
            chunks.append([])
        if line.strip():
            chunks[-1].append(line)
    return ["\n".join(chunk) for chunk in chunks if chunk]


def history_record(text: str, path: str, zone: tzinfo, *, is_archived: bool = False) -> HistoryRecord:
    """Return one history entry, its time prefix set apart."""
    prefix, occurred_at, content = split_prefix(text, zone)
    return HistoryRecord(
        content=content.rstrip(),
        source_hash="",
        occurred_at=occurred_at,
        occurred_at_text=prefix,
        is_archived=is_archived,
        file=path,
    )


def time_problem(record: HistoryRecord, path: str) -> list[Problem]:
    if record.occurred_at is None and record.occurred_at_text:
        what = f"the time {record.occurred_at_text} can't be read"
        return [Problem(path, None, what, "taken; the text of the time is kept", "noted")]
    return []


def document_bytes(content: str, like: bytes) -> bytes:
    """Return a text as bytes in the style of a file: its byte order mark and its line ends."""
    mark = b"\xef\xbb\xbf" if like.startswith(b"\xef\xbb\xbf") else b""
    windows = like.count(b"\r\n")
    text = content.replace("\n", "\r\n") if windows * 2 > like.count(b"\n") else content
    return mark + text.encode()
