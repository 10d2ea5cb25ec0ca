"""A JSON file that is read whole: its value, or the report of why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memoryhub.lib.layouts.documents import unreadable
from memoryhub.lib.layouts.records import FileKind, FileRead, Item, Problem
from memoryhub.lib.safe_folder import FileInfo, Folder, UnreadableFile
from memoryhub.lib.validation import BadJSON, decode_json, decode_utf8


@dataclass(frozen=True)
class JsonFile:
    """A decoded file. ``problems`` begins with the repairs that decoding took; readers add their own."""

    path: str
    kind: FileKind
    value: Any
    info: FileInfo | None
    problems: list[Problem]

    def read(self, items: list[Item]) -> FileRead:
        """Return the report of a file whose items these are."""
        return FileRead(self.path, self.kind, self.info, items, self.problems)

    def rejected(self, what: str) -> FileRead:
        """Return the report of a file that is JSON of another shape."""
        self.problems.append(Problem(self.path, 1, what, "not taken", "rejected"))
        return self.read([])


def open_json(folder: Folder, path: str, kind: FileKind) -> JsonFile | FileRead:
    """Decode a file, or return the report that names what is wrong with it, with line and column."""
    try:
        raw, info = folder.read_bytes(path)
    except UnreadableFile as error:
        return unreadable(path, kind, error)
    return decode_file(path, kind, raw, info)


def decode_file(path: str, kind: FileKind, raw: bytes, info: FileInfo | None) -> JsonFile | FileRead:
    """Decode the bytes of a file as ``open_json`` does."""
    try:
        text, repair = decode_utf8(raw)
        decoded = decode_json(text)
    except BadJSON as error:
        what = f"column {error.column}: {error.message}"
        return FileRead(
            path, kind, None, problems=[Problem(path, error.line, what, "the file is not taken", "rejected")]
        )
    repairs = dict.fromkeys([*decoded.repairs, *([repair] if repair else [])])
    return JsonFile(
        path, kind, decoded.value, info, [Problem(path, None, text, "taken so", "repaired") for text in repairs]
    )
