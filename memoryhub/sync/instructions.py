"""Instructions that people keep in a project's own folder, outside the agent's home, such as CLAUDE.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from django.conf import settings

from memoryhub.lib.files.safe_folder import Folder, FolderMissing, display_path
from memoryhub.lib.layouts.documents import read_document
from memoryhub.lib.layouts.records import FileRead
from sessions_app.models import SourceFile, SourceFolder, Workspace
from sessions_app.services.sources import is_recorded

NAMES = {  # files that a layout's program reads in a project's folder
    "claude-code": ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md"),
    "codex": ("AGENTS.md", "AGENTS.override.md"),
    "gemini-cli": ("GEMINI.md",),
    "opencode": ("AGENTS.md",),
}
RULES = {"claude-code": ".claude/rules"}
MAX_RULES = 100


def instruction_files(folder: Folder, layout: str) -> list[str]:
    """Return the paths of the instructions in a project's folder that exist."""
    rules = RULES.get(layout, "")
    names = [f"{rules}/{name}" for name in folder.names(rules) if name.endswith(".md")] if rules else []
    return [path for path in (*NAMES.get(layout, ()), *names[:MAX_RULES]) if folder.is_file(path)]


def read_instructions(source: Workspace | SourceFolder, stamps: Mapping[str, str]) -> Iterator[FileRead]:
    """Yield the instructions in the folder of a source's project, by absolute path; none if the folder is gone.

    ``stamps``: of the files as last read; those that are unchanged aren't read again.
    """
    if not source.instructions_path or source.layout not in NAMES:
        return
    root = Path(source.instructions_path)
    try:
        folder = Folder(root, quiet_seconds=settings.MEMORYHUB_QUIET_SECONDS)
    except FolderMissing:
        return
    with folder:
        paths = {path: display_path(str(root / path)) for path in instruction_files(folder, source.layout)}
        folder.skip_unchanged({path: stamps[shown] for path, shown in paths.items() if shown in stamps})
        for path, shown in paths.items():
            read = read_document(folder, path, name=f"{root.name}/{path}", is_instructions=True)
            yield replace(read, path=shown, problems=[replace(problem, file=shown) for problem in read.problems])


def has_changed_instructions(source: Workspace | SourceFolder) -> bool:
    """Tell whether the instructions in a project's folder differ from those that were read last."""
    if not source.instructions_path or source.layout not in NAMES:
        return False
    workspace, owner = (source.workspace, source) if isinstance(source, SourceFolder) else (source, None)
    root = Path(source.instructions_path)
    rows = SourceFile.objects.filter(workspace=workspace, path__startswith=f"{root}/")
    known = {row.path: row for row in rows.exclude(status=SourceFile.Status.MISSING)}
    try:
        with Folder(root) as folder:
            found = {display_path(str(root / path)): path for path in instruction_files(folder, source.layout)}
            if any(_has_changed(folder, path, known.get(shown)) for shown, path in found.items()):
                return True
    except FolderMissing:
        found = {}
    return any(row.folder_id == (owner.pk if owner else None) for path, row in known.items() if path not in found)


def _has_changed(folder: Folder, path: str, row: SourceFile | None) -> bool:
    """Tell whether a file differs from its last read; one that couldn't be read, whether that has changed."""
    if row is None or row.stamp:
        return row is None or folder.stamp(path) != row.stamp
    read = read_document(folder, path)
    return read.info is not None or not is_recorded(row, read)
