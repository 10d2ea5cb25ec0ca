"""Reading a whole folder, one source file at a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, tzinfo

from memoryhub.lib.folder import Folder, Refused
from memoryhub.lib.layouts import agterm, grid, grip, nanobot
from memoryhub.lib.layouts.nanobot import below
from memoryhub.lib.layouts.records import FileRead, Found

READERS = {"nanobot": nanobot.read, "grip": grip.read, "grid": grid.read, "agterm": agterm.read}


def read_folder(folder: Folder, found: Found, *, zone: tzinfo = UTC, only: str = "") -> Iterator[FileRead]:
    """Yield what each source file holds; memory in use is bounded by the largest of them.

    ``zone``: how agents' times without a zone are read. ``only``: one AgTerm export instead of the folder. Links and
    special files where memory should be are reported and not read.
    """
    if only:
        yield agterm.read_export(folder, only, zone)
        return
    yield from READERS[found.layout](folder, found, zone)


def count_files(folder: Folder, found: Found, *, only: str = "") -> int:
    """Return about how many files an import reads, for a progress bar."""
    if only:
        return 1
    if found.layout in ("grid", "agterm"):
        return len(folder.names(found.home))
    places = {below(found.home, "sessions"), below(found.workspace, "sessions"), below(found.workspace, "memory")}
    return sum(not isinstance(file, Refused) for place in places for file in folder.files(place, depth=1))
