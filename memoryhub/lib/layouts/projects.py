"""List the projects in an agent's home, and tell which of them a file belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts import cline_tasks
from memoryhub.lib.layouts.claude_code import layout as claude_code
from memoryhub.lib.layouts.codex import layout as codex
from memoryhub.lib.layouts.gemini_cli import layout as gemini_cli
from memoryhub.lib.layouts.hermes import layout as hermes
from memoryhub.lib.layouts.openclaw import layout as openclaw
from memoryhub.lib.layouts.opencode import layout as opencode
from memoryhub.lib.layouts.records import DetectedLayout, Project
from memoryhub.lib.validation import clean_text, visible_line

LISTS: dict[str, Callable[[Folder], list[Project]]] = {
    "claude-code": claude_code.projects,
    "gemini-cli": gemini_cli.projects,
    "codex": codex.projects,
    "openclaw": openclaw.projects,
    "opencode": opencode.projects,
    "hermes": hermes.projects,
    "memory-bank": cline_tasks.projects,
}
PARENTS = {"claude-code": "projects", "gemini-cli": "tmp"}  # folders with one for each project
OWNERS: dict[str, Callable[[Folder, str], str | None]] = {
    "codex": codex.project_of_file,
    "openclaw": openclaw.agent_of_file,
    "hermes": hermes.profile_of_file,
}
MEMORY_FOLDERS: dict[str, Callable[[Folder, str], str]] = {
    "openclaw": openclaw.workspace_of,
    "hermes": hermes.profile_folder,
}
NEVER = datetime.min.replace(tzinfo=UTC)


def projects_of(folder: Folder, detected: DetectedLayout) -> list[Project]:
    """Return the projects in a home, latest first; none if the program keeps one memory in each folder."""
    found = LISTS[detected.layout](folder) if detected.layout in LISTS else []
    return sorted(found, key=lambda one: (one.last_active or NEVER, one.name), reverse=True)


def in_project(folder: Folder, detected: DetectedLayout, name: str) -> DetectedLayout:
    """Return the layout of one project in a home, with the folder of its memory where each project has its own."""
    find = MEMORY_FOLDERS.get(detected.layout)
    return replace(detected, project=name, workspace=find(folder, name) if find else detected.workspace)


def project_of_file(folder: Folder, layout: str, path: str) -> str | None:
    """Return the name of the project that a file in a home belongs to; None if it may concern any of them."""
    if layout in OWNERS:
        return OWNERS[layout](folder, path)
    _, parent, below = f"/{path}".partition(f"/{PARENTS.get(layout, '')}/")
    name = below.partition("/")[0]
    return visible_line(clean_text(name)) if layout in PARENTS and parent and name else None
