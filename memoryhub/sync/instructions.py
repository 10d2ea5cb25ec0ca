"""Instructions that people keep in a project's own folder, outside the agent's home, such as CLAUDE.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from django.conf import settings

from memoryhub.lib.layouts.documents import read_document
from memoryhub.lib.layouts.records import DocumentRecord, FileRead
from memoryhub.lib.safe_folder import Folder, FolderMissing, display_path
from sessions_app.models import SourceFile, Workspace

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


def read_instructions(workspace: Workspace, stamps: Mapping[str, str]) -> Iterator[FileRead]:
    """Yield the instructions in the folder of a workspace's project, by absolute path; none if the folder is gone.

    ``stamps``: of the files as last read; those that are unchanged aren't read again.
    """
    if not workspace.instructions_path or workspace.layout not in NAMES:
        return
    root = Path(workspace.instructions_path)
    try:
        folder = Folder(root, quiet_seconds=settings.MEMORYHUB_QUIET_SECONDS)
    except FolderMissing:
        return
    with folder:
        paths = {path: display_path(str(root / path)) for path in instruction_files(folder, workspace.layout)}
        folder.skip_unchanged({path: stamps[shown] for path, shown in paths.items() if shown in stamps})
        for path, shown in paths.items():
            yield _placed(read_document(folder, path), f"{root.name}/{path}", shown)


def _placed(read: FileRead, name: str, shown: str) -> FileRead:
    items = [
        replace(item, name=name, is_instructions=True) if isinstance(item, DocumentRecord) else item
        for item in read.items
    ]
    problems = [replace(problem, file=shown) for problem in read.problems]
    return replace(read, path=shown, items=items, problems=problems)


def has_changed_instructions(workspace: Workspace) -> bool:
    """Tell whether the instructions in a project's folder differ from those that were read last."""
    if not workspace.instructions_path or workspace.layout not in NAMES:
        return False
    root = Path(workspace.instructions_path)
    try:
        with Folder(root) as folder:
            found = {
                display_path(str(root / path)): folder.stamp(path)
                for path in instruction_files(folder, workspace.layout)
            }
    except FolderMissing:
        found = {}
    rows = SourceFile.objects.filter(workspace=workspace, path__startswith=f"{root}/")
    return found != dict(rows.exclude(status=SourceFile.Status.MISSING).values_list("path", "stamp"))
