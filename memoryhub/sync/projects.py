"""Projects in the homes of agents, each of which is a workspace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memoryhub.lib.errors import Invalid, NotFound
from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.projects import in_project, projects_of
from memoryhub.lib.layouts.records import DetectedLayout, Project
from sessions_app.models import Workspace


@dataclass(frozen=True)
class Home:
    """An agent's home: its path, layout, and projects, latest first, with the workspace of each by project name."""

    path: Path
    found: DetectedLayout
    projects: list[Project]
    workspaces: dict[str, Workspace]

    @property
    def byte_count(self) -> int:
        return sum(project.byte_count for project in self.projects)

    @property
    def session_count(self) -> int:
        return sum(project.session_count for project in self.projects)

    def names(self) -> list[str]:
        return [project.name for project in self.projects]


def open_home(path: Path, layout: str = "auto") -> Home | None:
    """Return the home at a path; None if it is a file or a folder without projects. Raises Invalid, FolderMissing."""
    path = path.expanduser().resolve()
    if path.is_file():
        return None
    with Folder(path) as folder:
        return home_in(folder, detect(folder, layout))


def home_in(folder: Folder, found: DetectedLayout) -> Home | None:
    """Return the home in an open folder; None if it has no projects."""
    projects = [] if found.project else projects_of(folder, found)
    if not projects:
        return None
    rows = Workspace.objects.filter(path=str(folder.path), project__in=[project.name for project in projects])
    return Home(folder.path, found, projects, {row.project: row for row in rows})


def choose_project(folder: Folder, found: DetectedLayout, name: str) -> tuple[DetectedLayout, Project | None]:
    """Return the layout of the project to import, and the project; None if the folder has no projects.

    ``name``: may be empty if there is only one. A project whose files are all gone or damaged can be chosen if it was
    imported before. Raises Invalid, NotFound.
    """
    projects = [] if found.project else projects_of(folder, found)
    chosen = [project for project in projects if project.name == name] if name else projects
    if len(chosen) == 1:
        return in_project(folder, found, chosen[0].name), chosen[0]
    if chosen:
        message = f"This folder contains {len(projects)} projects. Choose which to import."
        raise Invalid(message, code="several_projects")
    rows = Workspace.objects.filter(path=str(folder.path), layout=found.layout).exclude(project="")
    known = rows.values_list("project", flat=True)
    name = name or ("" if found.project or len(known) != 1 else known[0])
    if not name or name == found.project:
        return found, None
    if name in known:
        return in_project(folder, found, name), None
    raise NotFound(f"This folder has no project named {name}.", code="unknown_project")
