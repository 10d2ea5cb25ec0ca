"""Find agents' folders in the usual places on this machine, for the import page and the first run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from django.conf import settings

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.projects import projects_of
from memoryhub.lib.layouts.records import DetectedLayout, Project
from memoryhub.sync.importing import is_below_roots
from memoryhub.sync.overlaps import overlapping
from sessions_app.models import Workspace

USUAL_PLACES = (
    "~/.nanobot",
    "~/.grip",
    "~/.local/grid",
    "~/.local/share/grid",
    "~/.grid",
    "~/.agterm",
    "~/.agterm/exports",
    "~/.local/share/agterm",
)
COUNTED_FILES = 500
DEPTH = 4


@dataclass(frozen=True)
class FoundFolder:
    """``path``: starting with "~". ``file_count``: up to 500; 0 for a home with projects.

    ``workspaces``: those that it was imported into, or if there are none, that have its memory from another folder.
    ``found``: its layout, unless it is a home with projects.
    """

    path: str
    program: str
    file_count: int
    modified_at: datetime | None
    project_count: int = 0
    byte_count: int = 0
    workspaces: Sequence[Workspace] = ()
    found: DetectedLayout | None = None

    @property
    def has_more_files(self) -> bool:
        return self.file_count == COUNTED_FILES

    @property
    def workspace(self) -> Workspace | None:
        return self.workspaces[0] if self.workspaces else None


def found_folders() -> list[FoundFolder]:
    """Return the readable agents' folders in the usual places from which pages may import. Links aren't followed."""
    places = dict.fromkeys([*USUAL_PLACES, *settings.AGENT_HOMES])
    found = {str(Path(place).expanduser()): folder for place in places if (folder := _look(place))}
    imported = list(Workspace.objects.filter(path__in=found).order_by("name", "id"))
    own = {path: [row for row in imported if row.path == path] for path in found}
    return [replace(folder, workspaces=own[path] or _overlaps(path, folder)) for path, folder in found.items()]


def other_folders(path: Path) -> list[FoundFolder]:
    """Return the found folders that aren't imported yet, except the one at a path."""
    return [one for one in found_folders() if not one.workspaces and Path(one.path).expanduser() != path]


def _overlaps(path: str, folder: FoundFolder) -> list[Workspace]:
    return overlapping(Path(path).resolve(), folder.found) if folder.found else []


def _look(place: str) -> FoundFolder | None:
    path = Path(place).expanduser()
    try:
        if path.is_symlink() or not path.is_dir() or not is_below_roots(path):
            return None
        with Folder(path) as folder:
            detected = detect(folder)
            program = Workspace.Layout(detected.layout).label
            if projects := projects_of(folder, detected):
                return _home(place, program, projects)
            files = (file for file in folder.files(depth=DEPTH) if isinstance(file, str))
            names = list(islice(files, COUNTED_FILES))
            modified = max((folder.modified_ns(name) for name in names), default=0)
    except (OSError, RuntimeError, MemoryHubError):
        return None
    when = datetime.fromtimestamp(modified / 1e9, UTC)
    return FoundFolder(place, program, len(names), when, found=detected) if names else None


def _home(place: str, program: str, projects: Sequence[Project]) -> FoundFolder:
    latest = max((one.last_active for one in projects if one.last_active), default=None)
    size = sum(one.byte_count for one in projects)
    return FoundFolder(place, program, 0, latest, len(projects), size)
