"""Reading a whole folder, one source file at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, tzinfo

from memoryhub.lib.layouts import agterm, grid, grip, hub_folder, nanobot
from memoryhub.lib.layouts.nanobot import below
from memoryhub.lib.layouts.records import FileRead, Found
from memoryhub.lib.safe_folder import Folder, SkippedPath, display_path

READERS = {
    "nanobot": nanobot.read,
    "grip": grip.read,
    "grid": grid.read,
    "agterm": agterm.read,
    "hub": hub_folder.read,
}


def read_folder(folder: Folder, found: Found, *, zone: tzinfo = UTC, only: str = "") -> Iterator[FileRead]:
    """Yield what each source file holds; memory in use is bounded by the largest of them.

    ``zone``: how agents' times without a zone are read. ``only``: one AgTerm export instead of the folder. Links and
    special files where memory should be are reported and not read.
    """
    reads = [agterm.read_export(folder, only, zone)] if only else READERS[found.layout](folder, found, zone)
    for read in reads:
        yield _with_storable_names(read)


def _with_storable_names(read: FileRead) -> FileRead:
    """Show file names that are not UTF-8 with their odd bytes as escapes: no database stores them otherwise."""
    if display_path(read.path) == read.path:
        return read
    problems = [replace(problem, file=display_path(problem.file)) for problem in read.problems]
    return replace(read, path=display_path(read.path), problems=problems)


def count_files(folder: Folder, found: Found, *, only: str = "") -> int:
    """Return about how many files an import reads, for a progress bar."""
    if only:
        return 1
    if found.layout in ("grid", "agterm"):
        return len(folder.names(found.home))
    if found.layout == "hub":
        return sum(not isinstance(file, SkippedPath) for file in folder.files())
    places = {below(found.home, "sessions"), below(found.workspace, "sessions"), below(found.workspace, "memory")}
    return sum(not isinstance(file, SkippedPath) for place in places for file in folder.files(place, depth=1))
