"""Read memory documents and history files, whose formats several agents share."""

from __future__ import annotations

import codecs
import re
from dataclasses import replace
from datetime import tzinfo
from difflib import SequenceMatcher
from typing import Any

from memoryhub.lib.document_size import MAX_DOCUMENT_CHARS, is_oversize
from memoryhub.lib.files.safe_folder import FileInfo, Folder, UnchangedFile, UnreadableFile
from memoryhub.lib.layouts.records import DocumentRecord, FileKind, FileRead, HistoryRecord, Outcome, Problem
from memoryhub.lib.layouts.times import split_prefix
from memoryhub.lib.validation import UTF_16, decode_utf8

_DATED = re.compile(r"\[\d{4}-\d\d-\d\d")
_RAW = re.compile(r"(?:\[\d{4}-\d\d-\d\d[^\]]*\] )?\[RAW\] (\d{1,6}) messages\b")
_RAW_MESSAGE = re.compile(r"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d\] [A-Z]+(?: \[tools: [^\]]*\])?: ")  # as nanobot writes it
_INDENTED_DATE = re.compile(r"\n (?= *\[\d{4}-\d\d-\d\d)")
_CONTINUED_DATE = re.compile(r"\n(?= *\[\d{4}-\d\d-\d\d)")
_INDENTED = re.compile(r"\n (?= *(?:\[\d{4}-\d\d-\d\d|\[RAW\])| +\.$)", re.MULTILINE)
_CONTINUED = re.compile(r"\n(?= *(?:\[\d{4}-\d\d-\d\d|\[RAW\])| +\.$)", re.MULTILINE)
_DOTTED = re.compile(r"\n \.$", re.MULTILINE)
_INDENTED_START = re.compile(r"\A (?= *\[\d{4}-\d\d-\d\d)")
_BLANK = re.compile(r"\n[^\S\n]*(?=\n)")
EXCERPT_BYTES = 2000
EMPTY = "is empty"


def unreadable_file(path: str, kind: FileKind, error: UnreadableFile) -> FileRead:
    """Return the FileRead of a file that couldn't be read, or was skipped because it is unchanged."""
    if isinstance(error, UnchangedFile):
        return FileRead(path, kind, None, is_skipped=True)
    return unread_file(path, error.message, "not read", "rejected", kind)


def empty_file(path: str, kind: FileKind, info: FileInfo) -> FileRead:
    """Return the FileRead of an unexpectedly empty file."""
    problem = Problem(path, None, EMPTY, "the hub keeps its rows", "held")
    return FileRead(path, kind, info, problems=[problem], is_empty=True)


def unread_file(
    path: str, what: str, action: str = "skipped", outcome: Outcome = "ignored", kind: FileKind = "other"
) -> FileRead:
    """Return the FileRead of a file that isn't read, with the reason as its problem."""
    return FileRead(path, kind, None, problems=[Problem(path, None, what, action, outcome)])


def read_document(folder: Folder, path: str, **attributes: Any) -> FileRead:
    """Read a memory document of up to ``MAX_DOCUMENT_CHARS``. ``attributes``: of its record, such as ``name``."""
    try:
        raw, info = folder.read_bytes(path, limit=4 * MAX_DOCUMENT_CHARS)
    except UnreadableFile as error:
        return unreadable_file(path, "document", error)
    read = parse_document(path, raw, info)
    texts = [item.content for item in read.items if isinstance(item, DocumentRecord)]
    if any(map(is_oversize, texts)):
        what = f"has {max(map(len, texts)):,} characters; the limit is {MAX_DOCUMENT_CHARS:,}"
        return FileRead(path, "document", info, problems=[Problem(path, None, what, "not imported", "rejected")])
    items = [replace(item, **attributes) if isinstance(item, DocumentRecord) else item for item in read.items]
    return replace(read, items=items)


def parse_document(path: str, raw: bytes, info: FileInfo | None) -> FileRead:
    """Parse a memory document, with line endings as ``\\n``; ``raw`` is kept if the text doesn't reproduce it."""
    text, repair = decode_utf8(raw)
    content = text.replace("\r\n", "\n")
    problems = [Problem(path, None, repair, "imported; the original bytes are kept", "repaired")] if repair else []
    record = DocumentRecord(path.rpartition("/")[2], content, None if content.encode() == raw else raw)
    return FileRead(path, "document", info, [record], problems)


def split_history(text: str) -> list[str]:
    """Split HISTORY.md as nanobot's own upgrade does: at blank lines, and at lines that begin with a date.

    A ``[RAW]`` entry, which quotes messages, runs to the next line that begins with ``[YYYY-MM-DD``. The lines of
    nanobot's own quoted messages begin so as well, as many as its heading says, and belong to it.
    """
    chunks: list[list[str]] = [[]]
    is_raw, quoted = False, 0
    for line in text.replace("\r\n", "\n").split("\n"):
        if quoted and _RAW_MESSAGE.match(line):
            quoted -= 1
        elif _DATED.match(line) or (not is_raw and (_RAW.match(line) or not line.strip())):
            heading = _RAW.match(line)
            is_raw, quoted = bool(heading), int(heading[1]) if heading else 0
            chunks.append([])
        if is_raw or line.strip():
            chunks[-1].append(line)
    entries = ("\n".join(chunk).rstrip() for chunk in chunks if chunk)
    return [_plain(entry) for entry in entries]


def _plain(entry: str) -> str:
    if _RAW.match(entry):
        return _INDENTED_DATE.sub("\n", entry)
    return _INDENTED.sub("\n", _DOTTED.sub("\n", entry))


def one_entry(prefix: str, content: str) -> str:
    """Return an entry in a form that ``split_history`` and ``history_record`` read back as it is.

    Dates at line starts get a space. Outside ``[RAW]`` entries, a blank line becomes `` .``.
    """
    text = f"{prefix} {content}".strip(" ").rstrip()
    if not prefix and _DATED.match(text.lstrip(" ")):
        text = f" {text}"
    if split_history(text) == [text]:
        return text
    if _RAW.match(text):
        return _CONTINUED_DATE.sub("\n ", text)
    return _BLANK.sub("\n .", _CONTINUED.sub("\n ", text))


def history_record(text: str, path: str, zone: tzinfo, *, is_archived: bool = False) -> HistoryRecord:
    """Return a history entry without its time prefix."""
    prefix, occurred_at, content = split_prefix(text, zone)
    content = content if prefix else _INDENTED_START.sub("", content)
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
    """Encode a text with the byte order mark and the line endings of the file ``like``; as UTF-16 if that is.

    Lines that the file has too keep their ending; others get that of most lines.
    """
    if like.startswith(UTF_16):
        encoding = "utf-16-le" if like.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
        text = document_bytes(content, decode_utf8(like)[0].encode()).decode()
        return like[:2] + text.encode(encoding)
    bom = b"\xef\xbb\xbf" if like.startswith(b"\xef\xbb\xbf") else b""
    windows, others = like.count(b"\r\n"), like.count(b"\n")
    usual = "\r\n" if windows * 2 > others else "\n"
    if windows in (0, others):
        return bom + content.replace("\n", usual).encode()
    new = content.split("\n")
    old = decode_utf8(like)[0].split("\n")
    endings = [usual] * len(new)
    plain = [line.removesuffix("\r") for line in old]
    for block in SequenceMatcher(None, plain, new, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            endings[block.b + step] = "\r\n" if old[block.a + step].endswith("\r") else "\n"
    return bom + ("".join(line + end for line, end in zip(new[:-1], endings, strict=False)) + new[-1]).encode()
