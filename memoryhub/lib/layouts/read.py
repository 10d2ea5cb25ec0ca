"""Read a whole folder, one source file at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, tzinfo

from memoryhub.lib.files.safe_folder import Folder, SkippedPath, display_path, join_path
from memoryhub.lib.layouts import agterm, basic_memory, grip, hub, hub_folder, memory_bank, server_memory
from memoryhub.lib.layouts.claude_code import layout as claude_code
from memoryhub.lib.layouts.codex import layout as codex
from memoryhub.lib.layouts.documents import unread_file
from memoryhub.lib.layouts.gemini_cli import layout as gemini_cli
from memoryhub.lib.layouts.grid import layout as grid
from memoryhub.lib.layouts.hermes import layout as hermes
from memoryhub.lib.layouts.nanobot import layout as nanobot
from memoryhub.lib.layouts.openclaw import layout as openclaw
from memoryhub.lib.layouts.opencode import layout as opencode
from memoryhub.lib.layouts.records import DetectedLayout, FileRead

NESTED_FOLDERS = {"codex": 4}  # depth of the memory folders, unless it is 1
MEMORY_FOLDERS = ("sessions", "memory", "state", "documents", "workspace")
READERS = {
    "nanobot": nanobot.read,
    "grip": grip.read,
    "grid": grid.read,
    "agterm": agterm.read,
    "hub": hub_folder.read,
    "claude-code": claude_code.read,
    "codex": codex.read,
    "openclaw": openclaw.read,
    "opencode": opencode.read,
    "hermes": hermes.read,
    "gemini-cli": gemini_cli.read,
    "server-memory": server_memory.read,
    "basic-memory": basic_memory.read,
    "memory-bank": memory_bank.read,
}
SINGLE_FILES: dict[str, Callable[[Folder, str, tzinfo], FileRead]] = {  # readers of one file
    "agterm": agterm.read_export,
    "claude-code": claude_code.read_transcript,
    "codex": codex.read_transcript,
    "server-memory": server_memory.read_memory,
}
OWN_FOLDERS = {
    "nanobot": ("sessions", "memory"),
    "grip": ("sessions", "memory", "state"),
    "grid": ("sessions",),
    "openclaw": ("memory",),
    "hermes": ("memories", "sessions"),
}
UNREAD = "is not a file that MemoryHub reads"
WHOLE_FOLDERS = ("grid", "agterm", "hub")  # layouts whose folder holds nothing else
DERIVED = ("brain.db", "brain.db-shm", "brain.db-wal")  # Grip's index of its other files


def read_folder(
    folder: Folder, detected: DetectedLayout, *, zone: tzinfo = UTC, only: str = ""
) -> Iterator[FileRead]:
    """Yield each source file. Memory use is bounded by the largest file.

    ``zone``: for times without one. ``only``: read one file of SINGLE_FILES instead of the folder.
    """
    if only:
        reads: Iterable[FileRead] = [SINGLE_FILES[detected.layout](folder, only, zone)]
    else:
        reads = READERS[detected.layout](folder, detected, zone)
    seen: set[str] = set()
    for read in reads:
        seen.add(read.path)
        yield _with_storable_names(read)
    for skipped in [] if only else _skipped_paths(folder, detected):
        if skipped.path not in seen:
            seen.add(skipped.path)
            yield _with_storable_names(unread_file(skipped.path, skipped.reason, "not read", "rejected"))
    for path, reason in [] if only else _unread_files(folder, detected, seen):
        yield _with_storable_names(replace(unread_file(path, reason), is_foreign=True))


def _unread_files(folder: Folder, detected: DetectedLayout, seen: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield ``(path, reason)`` of the files in an agent's folders that no reader reads.

    Hidden and temporary files, and those that are derived from others, are left out.
    """
    parts = OWN_FOLDERS.get(detected.layout, ())
    places = {join_path(home, part): 1 for home in _homes(detected) for part in parts}
    if detected.layout in WHOLE_FOLDERS:
        places[detected.home] = 0 if detected.layout == "grid" else 2
    found = {file: UNREAD for path, depth in places.items() for file in folder.files(path, depth=depth)}
    for file, reason in found.items():
        path, why = (file.path, file.reason) if isinstance(file, SkippedPath) else (file, reason)
        if path not in seen and path not in places and not _is_known(folder, path, detected.layout):
            yield path, why


def _homes(detected: DetectedLayout) -> list[str]:
    """Return the folders with the memory: of a chosen profile or agent, only its own."""
    if detected.project and detected.layout in OWN_FOLDERS:
        return [detected.workspace]
    return [*dict.fromkeys([detected.home, detected.workspace])]


def _is_known(folder: Folder, path: str, layout: str) -> bool:
    """Return whether a file belongs to one that is read, or holds no memory: a temporary or hidden file."""
    *parents, name = path.split("/")
    if layout == "agterm":
        return not name.endswith(".json")
    is_part = name.endswith(nanobot.CHECKPOINT) and folder.exists(path.removesuffix(nanobot.CHECKPOINT) + ".jsonl")
    is_read_with_log = layout == "grip" and grip.ARCHIVE.fullmatch(name) is not None
    is_hidden = any(part.startswith(".") for part in (*parents, name))
    return (
        is_part
        or is_read_with_log
        or is_hidden
        or path == hub.MANIFEST
        or name in DERIVED
        or name.endswith((".tmp", ".lock"))
    )


def _skipped_paths(folder: Folder, detected: DetectedLayout) -> Iterator[SkippedPath]:
    """Yield the links and special files in the places of an agent's memory, and such places themselves.

    A workspace also has folders of other things: skills, projects, the repository of the memory.
    """
    paths = dict.fromkeys(join_path(home, place) for home in _homes(detected) for place in MEMORY_FOLDERS)
    for path in paths:
        if folder.exists(path) and not folder.is_folder(path):
            yield SkippedPath(path, folder.skip_reason(path))
        for file in folder.files(path, depth=NESTED_FOLDERS.get(detected.layout, 1)):
            if isinstance(file, SkippedPath) and not (path.endswith("workspace") and folder.is_folder(file.path)):
                yield file


def _with_storable_names(read: FileRead) -> FileRead:
    """Escape the bytes of file names that aren't UTF-8, so that databases can store them."""
    if display_path(read.path) == read.path:
        return read
    problems = [replace(problem, file=display_path(problem.file)) for problem in read.problems]
    return replace(read, path=display_path(read.path), problems=problems)


def count_files(folder: Folder, detected: DetectedLayout, *, only: str = "") -> int:
    """Return the approximate number of files that an import reads, for a progress bar."""
    if only:
        return 1
    if detected.layout in ("grid", "agterm"):
        return len(folder.names(detected.home))
    if detected.layout == "hub":
        return sum(not isinstance(file, SkippedPath) for file in folder.files())
    parents = {
        join_path(detected.home, "sessions"),
        join_path(detected.workspace, "sessions"),
        join_path(detected.workspace, "memory"),
    }
    return sum(not isinstance(file, SkippedPath) for parent in parents for file in folder.files(parent, depth=1))
