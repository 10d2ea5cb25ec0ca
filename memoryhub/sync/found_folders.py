"""Find agents' folders in the usual places on this machine, for the import page and the first run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.safe_folder import Folder
from memoryhub.sync.importing import is_below_roots
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
    """``path``: starting with "~". ``file_count``: up to 500. ``workspace``: the one it was imported into, if any."""

    path: str
    program: str
    file_count: int
    modified_at: datetime
    workspace: Workspace | None = None

    @property
    def has_more_files(self) -> bool:
        return self.file_count == COUNTED_FILES


def found_folders() -> list[FoundFolder]:
    """Return the readable agents' folders in the usual places from which pages may import. Links aren't followed."""
    found = [folder for place in USUAL_PLACES if (folder := _look(place))]
    paths = [str(Path(folder.path).expanduser()) for folder in found]
    imported = {row.path: row for row in Workspace.objects.filter(path__in=paths)}
    return [
        FoundFolder(one.path, one.program, one.file_count, one.modified_at, imported.get(path))
        for one, path in zip(found, paths, strict=True)
    ]


def _look(place: str) -> FoundFolder | None:
    path = Path(place).expanduser()
    try:
        if path.is_symlink() or not path.is_dir() or not is_below_roots(path):
            return None
        with Folder(path) as folder:
            layout = detect(folder).layout
            files = (file for file in folder.files(depth=DEPTH) if isinstance(file, str))
            names = list(islice(files, COUNTED_FILES))
            modified = max((folder.modified_ns(name) for name in names), default=0)
    except (OSError, RuntimeError, MemoryHubError):
        return None
    modified_at = datetime.fromtimestamp(modified / 1e9, UTC)
    return FoundFolder(place, Workspace.Layout(layout).label, len(names), modified_at) if names else None
