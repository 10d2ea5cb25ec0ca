"""Read a basic-memory vault: Markdown notes with ``permalink`` in their front matter.

Each note is a memory document under its path; its observations (``- [category] text #tag``) are list items, and so
facts of the document. The format follows the program's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, tzinfo
from itertools import islice

from memoryhub.lib.files.safe_folder import Folder, SkippedPath, UnreadableFile
from memoryhub.lib.layouts.documents import read_document, unread_file
from memoryhub.lib.layouts.records import DetectedLayout, FileRead

LAYOUT = "basic-memory"
MAX_PROBED = 40
FRONT_MATTER_BYTES = 4096
FENCE = b"---"


def find(folder: Folder, *, is_certain: bool = False) -> DetectedLayout | None:
    """Return the layout if more than half of the first notes have a permalink."""
    notes = (
        path for path in folder.files() if isinstance(path, str) and path.endswith(".md") and not is_hidden(path)
    )
    probed = [_has_permalink(folder, path) for path in islice(notes, MAX_PROBED)]
    if sum(probed) * 2 > len(probed) or is_certain:
        return DetectedLayout(LAYOUT, "", "", "")
    return None


def read(folder: Folder, _detected: DetectedLayout, _zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield each note, hidden folders excepted; links and special files with the reason why they aren't read."""
    for path in folder.files():
        if isinstance(path, SkippedPath):
            if not is_hidden(path.path):
                yield unread_file(path.path, path.reason, "not read", "rejected")
        elif path.endswith(".md") and not is_hidden(path):
            yield read_note(folder, path)


def read_note(folder: Folder, path: str, parent: str = "") -> FileRead:
    """Read a document that is named by its path below ``parent``."""
    return read_document(folder, path, name=path.removeprefix(f"{parent}/") if parent else path)


def is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def _has_permalink(folder: Folder, path: str) -> bool:
    try:
        head, _ = folder.read(path, lambda stream: stream.head(), even_if_unchanged=True, no_wait=True)
    except UnreadableFile:
        return False
    lines = head[:FRONT_MATTER_BYTES].removeprefix(b"\xef\xbb\xbf").splitlines()
    if not lines or lines[0].strip() != FENCE:
        return False
    for line in lines[1:]:
        if line.strip() == FENCE:
            return False
        if line.startswith(b"permalink:"):
            return True
    return False
