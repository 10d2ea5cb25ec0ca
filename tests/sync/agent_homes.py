"""An agent's home with several projects, in a made-up format: a folder of Markdown files for each project."""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts import detect as detection
from memoryhub.lib.layouts import projects, read
from memoryhub.lib.layouts.documents import read_document
from memoryhub.lib.layouts.records import DetectedLayout, FileRead, Project

LAYOUT = "claude-code"  # whose own reader is replaced


def find(folder: Folder) -> DetectedLayout | None:
    return DetectedLayout(LAYOUT, "1") if folder.is_folder("projects") else None


def list_projects(folder: Folder) -> list[Project]:
    return [_project(folder, name) for name in folder.names("projects")]


def _project(folder: Folder, name: str) -> Project:
    files = [f"projects/{name}/memory/{file}" for file in folder.names(f"projects/{name}/memory")]
    modified = max(map(folder.modified_ns, files), default=0)
    work = folder.path.parent / "work" / name
    label = name.rpartition("-")[2]
    return Project(name, label, str(work), len(files), 1_000, datetime.fromtimestamp(modified / 1e9, UTC))


def read_project(folder: Folder, detected: DetectedLayout, zone: tzinfo = UTC) -> Iterator[FileRead]:
    parent = f"projects/{detected.project}/memory"
    for name in folder.names(parent):
        yield read_document(folder, f"{parent}/{name}")


def owner(_folder: Folder, path: str) -> str | None:
    parts = path.split("/")
    return parts[1] if parts[0] == "projects" and len(parts) > 1 else None


def install(monkeypatch) -> None:
    """Let this format take the place of Claude Code's."""
    original = detection.detect

    def detect(folder: Folder, layout: str = "auto", *, only: str = "") -> DetectedLayout:
        return (not only and find(folder)) or original(folder, layout, only=only)

    for module in ("importing", "import_requests", "syncing", "projects", "found_folders"):
        monkeypatch.setattr(f"memoryhub.sync.{module}.detect", detect)
    monkeypatch.setitem(read.READERS, LAYOUT, read_project)
    monkeypatch.setitem(projects.LISTS, LAYOUT, list_projects)
    monkeypatch.setitem(projects.OWNERS, LAYOUT, owner)


def write_project(home: Path, name: str, text: str = "# Facts\n\n- likes tea\n") -> Path:
    file = home / "projects" / name / "memory" / "MEMORY.md"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file
