"""Find the workspaces that already have the memory in a folder, because theirs contains it or lies in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django.db.models import Q

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.projects import in_project
from memoryhub.lib.layouts.records import DetectedLayout
from memoryhub.sync.projects import Home, choose_project
from sessions_app.models import SourceFile, SourceFolder, Workspace

Source = Workspace | SourceFolder
FOREIGN = "other"  # the kind of files that are only listed


def overlaps_at(path: Path, layout: str = "auto", project: str = "") -> list[Workspace]:
    """Return the workspaces that overlap with what an import of a path would read; none if it can't be read."""
    path = path.expanduser().resolve()
    if not (rows := _nested(path)):
        return []
    is_file = path.is_file()
    try:
        with Folder(path.parent if is_file else path) as folder:
            found = detect(folder, layout, only=path.name if is_file else "")
            found = found if is_file else choose_project(folder, found, project)[0]
    except MemoryHubError:  # the import reports it
        return []
    return _overlapping(rows, path, found)


def overlaps_in(home: Home) -> dict[str, list[Workspace]]:
    """Return the workspaces that overlap with projects of a home, by the names of those that weren't imported."""
    if not (rows := _nested(home.path)):
        return {}
    with Folder(home.path) as folder:
        new = {name: in_project(folder, home.found, name) for name in home.names() if name not in home.workspaces}
    return {name: _overlapping(rows, home.path, found) for name, found in new.items()}


def overlapping(path: Path, found: DetectedLayout) -> list[Workspace]:
    """Return the workspaces fed from a folder around this one or inside it, if both have the same memory.

    A workspace that was imported from the path itself isn't among them, nor one of another project of a home.
    """
    return _overlapping(_nested(path), path, found)


def _overlapping(rows: Sequence[Source], path: Path, found: DetectedLayout) -> list[Workspace]:
    same = [row for row in rows if not (row.project and found.project and row.project != found.project)]
    owners = [row if isinstance(row, Workspace) else row.workspace for row in same if _shares_files(row, path, found)]
    return list(dict.fromkeys(owners))


def _nested(path: Path) -> list[Source]:
    """Return what is fed from folders and files around a path and inside it."""
    around = [str(parent) for parent in path.parents]
    is_nested = Q(path__in=around) | Q(path__startswith=f"{str(path).rstrip('/')}/")
    folders = SourceFolder.objects.filter(is_nested, removed_at=None).select_related("workspace")
    return [*Workspace.objects.filter(is_nested).order_by("name", "id"), *folders.order_by("id")]


def _shares_files(row: Source, path: Path, found: DetectedLayout) -> bool:
    """Tell whether the outer folder's import reads files of the inner folder."""
    other = Path(row.path)
    if other.is_relative_to(path):
        memory = path / found.workspace if found.project else path
        is_inside = other.is_relative_to(memory) or memory.is_relative_to(other)
        return is_inside and row.layout == (found.program or found.layout)
    if not path.is_relative_to(other):  # only alike to a database that ignores case
        return False
    files = SourceFile.objects.filter(workspace=row, folder=None) if isinstance(row, Workspace) else row.files
    prefix = str(path.relative_to(other)) if isinstance(row, Workspace) else str(path)
    own = files.exclude(kind=FOREIGN)
    return own.filter(Q(path=prefix) | Q(path__startswith=f"{prefix}/")).exists()
