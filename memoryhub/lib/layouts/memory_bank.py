"""Read the memory bank of Cline and Roo Code, and their tasks.

A memory bank is a folder of Markdown files with fixed names in a project. Tasks are conversations in the extension's
folder below VS Code's ``globalStorage``; ``cline_tasks`` reads them. Formats follow the programs' documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, tzinfo

from memoryhub.lib.files.safe_folder import Folder, SkippedPath, join_path
from memoryhub.lib.layouts import cline_tasks
from memoryhub.lib.layouts.basic_memory import is_hidden, read_note
from memoryhub.lib.layouts.documents import unread_file
from memoryhub.lib.layouts.records import DetectedLayout, FileRead

LAYOUT = "memory-bank"
BANK = "memory-bank"
NAMES = (
    "projectbrief.md",
    "productContext.md",
    "activeContext.md",
    "systemPatterns.md",
    "techContext.md",
    "progress.md",
    "decisionLog.md",
)
MIN_NAMES = 2  # of the names, in a folder that isn't called memory-bank


def find(folder: Folder, *, is_certain: bool = False) -> DetectedLayout | None:
    """Return the layout of a project with a memory bank, of a bank itself, or of an extension's folder of tasks."""
    if any(folder.exists(join_path(BANK, name)) for name in NAMES):
        return DetectedLayout(LAYOUT, "", "", BANK)
    if sum(folder.exists(name) for name in NAMES) >= MIN_NAMES or cline_tasks.task_names(folder):
        return DetectedLayout(LAYOUT, "", "", "")
    return DetectedLayout(LAYOUT, "", "", BANK if folder.is_folder(BANK) else "") if is_certain else None


def read(folder: Folder, detected: DetectedLayout, _zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield the documents of the bank and the tasks of the detected project, or of all."""
    yield from cline_tasks.read(folder, detected)
    if detected.workspace or not cline_tasks.task_names(folder):
        for path in folder.files(detected.workspace):
            if isinstance(path, SkippedPath):
                yield unread_file(path.path, path.reason, "not read", "rejected")
            elif path.endswith(".md") and not is_hidden(path):
                yield read_note(folder, path, detected.workspace)
