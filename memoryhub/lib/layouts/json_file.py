"""Read a whole JSON file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memoryhub.lib.files.safe_folder import MAX_WHOLE_FILE_BYTES, FileInfo, Folder, UnreadableFile
from memoryhub.lib.layouts.documents import unreadable_file
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import REPAIRED, FileKind, FileRead, Item, Problem
from memoryhub.lib.validation import BadJSON, decode_json, decode_utf8


@dataclass(frozen=True)
class JsonFile:
    """A decoded JSON file. ``problems``: the repairs made while decoding; readers add their own problems."""

    path: str
    kind: FileKind
    value: Any
    info: FileInfo | None
    problems: list[Problem]

    def read(self, items: list[Item]) -> FileRead:
        """Return the FileRead with these items."""
        return FileRead(self.path, self.kind, self.info, items, self.problems)

    def rejected(self, what: str) -> FileRead:
        """Return the FileRead of a file with an unexpected structure."""
        self.problems.append(Problem(self.path, 1, what, "skipped", "rejected"))
        return self.read([])


def load_json(folder: Folder, path: str, *, limit: int = MAX_WHOLE_FILE_BYTES, no_wait: bool = False) -> Any:
    """Return the value of a file that is read beside others, also if it is unchanged; None if it can't be read."""
    try:
        raw, _ = folder.read_bytes(path, limit=limit, even_if_unchanged=True, no_wait=no_wait)
        return decode_json(decode_utf8(raw)[0]).value
    except (UnreadableFile, BadJSON):
        return None


def open_json(folder: Folder, path: str, kind: FileKind, *, keep_spelling: bool = True) -> JsonFile | FileRead:
    """Decode a file, or return a FileRead whose problem names the line and column of the error."""
    try:
        raw, info = folder.read_bytes(path)
    except UnreadableFile as error:
        return unreadable_file(path, kind, error)
    return decode_file(path, kind, raw, info, keep_spelling=keep_spelling)


def decode_file(
    path: str, kind: FileKind, raw: bytes, info: FileInfo | None, *, keep_spelling: bool = True
) -> JsonFile | FileRead:
    """Decode the bytes of a file; see ``open_json``."""
    try:
        text, repair = decode_utf8(raw)
        decoded = decode_json(text, keep_spelling=keep_spelling)
    except BadJSON as error:
        what = f"column {error.column}: {error.message}"
        return FileRead(
            path, kind, None, problems=[Problem(path, error.line, what, "the file is skipped", "rejected")]
        )
    repairs = ProblemCounts(path)
    for what in [*decoded.repairs, *([repair] if repair else [])]:
        repairs.add(what, REPAIRED, "repaired")
    return JsonFile(path, kind, decoded.value, info, repairs.problems())
