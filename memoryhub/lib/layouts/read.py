"""Read a whole folder, one source file at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, tzinfo

from memoryhub.lib.layouts import agterm, grid, grip, hub_folder, nanobot
from memoryhub.lib.layouts.nanobot import join_path
from memoryhub.lib.layouts.records import DetectedLayout, FileRead
from memoryhub.lib.safe_folder import Folder, SkippedPath, display_path

READERS = {
    "nanobot": nanobot.read,
    "grip": grip.read,
    "grid": grid.read,
    "agterm": agterm.read,
    "hub": hub_folder.read,
}


def read_folder(
    folder: Folder, detected: DetectedLayout, *, zone: tzinfo = UTC, only: str = ""
) -> Iterator[FileRead]:
    """Yield each source file. Memory use is bounded by the largest file.

    ``zone``: for times without one. ``only``: read one AgTerm export instead of the folder.
    """
    reads = [agterm.read_export(folder, only, zone)] if only else READERS[detected.layout](folder, detected, zone)
    for read in reads:
        yield _with_storable_names(read)


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
