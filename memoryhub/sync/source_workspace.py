"""The workspace of an imported folder, or of one project in it."""

from __future__ import annotations

from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import Any

from django.db import transaction

from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.records import DetectedLayout
from sessions_app.models import SourceFile, Workspace
from sessions_app.models.workspaces import INSTRUCTED, WRITTEN_BACK
from sessions_app.services.workspaces import free_slug

MAX_NAME = 200


def known_layout(folder: Folder, path: Path) -> str:
    """Return the layout of the newest workspace of a path that still has one of its files there, "" if none has.

    A folder whose files were emptied or damaged may no longer look like that of any program.
    """
    files = SourceFile.objects.filter(workspace__path=str(path), folder=None).order_by("-workspace_id", "path")
    rows = files.values_list("workspace__layout", "path")
    return next((layout for layout, file in rows.iterator() if folder.exists(file)), "")


def workspace_for(
    path: Path, name: str, found: DetectedLayout, now: datetime, *, dry_run: bool, instructions: Path | None = None
) -> Workspace:
    """Return the workspace of a folder and project with what was found there, creating it unless ``dry_run``.

    ``instructions``: the project's own folder, with instructions that people wrote.
    """
    known = Workspace.objects.filter(path=str(path), project=found.project).first()
    facts: dict[str, Any] = {
        "layout": found.program or found.layout,
        "layout_version": found.version,
        "unavailable_since": None,
    }
    if instructions:
        facts["instructions_path"] = str(instructions)
    if known:
        if found.layout not in WRITTEN_BACK and not (found.layout in INSTRUCTED and known.write_instructions):
            facts["write_back"] = False
        _update(known, facts, dry_run=dry_run)
        return known
    name = name or name_of(path)
    workspace = Workspace(path=str(path), project=found.project, created_at=now, updated_at=now, **facts)
    workspace.name = free_name(name, str(Workspace.Layout(found.layout).label)) if found.project else name
    workspace.consolidation_style = "grip" if facts["layout"] == "grip" else "nanobot"
    workspace.knowledge_in_context = facts["layout"] == "grip"
    workspace.auto_compress = False  # its agent compresses; an operator can turn this on
    for key, value in found.settings.items():
        setattr(workspace, key, value)
    if not dry_run:
        with transaction.atomic():
            workspace.slug = free_slug(workspace.name)
            workspace.save()
    return workspace


def _update(workspace: Workspace, facts: dict[str, Any], *, dry_run: bool) -> None:
    changed = [key for key, value in facts.items() if getattr(workspace, key) != value]
    for key in changed:
        setattr(workspace, key, facts[key])
    if changed and not dry_run:
        workspace.save(update_fields=changed)


def name_of(path: Path) -> str:
    names = [part for part in path.parts if part != "workspace"]
    return names[-1].lstrip(".") or "workspace"


def free_name(name: str, program: str) -> str:
    """Return the name if no workspace has it, or else with the program's name, and a number if that is used, too."""
    name = " ".join(name.split())[: MAX_NAME - len(program) - 12] or "workspace"
    used = set(Workspace.objects.filter(name__startswith=name).values_list("name", flat=True))
    numbered = (f"{name} ({program}) {number}" for number in count(2))
    return next(free for free in chain([name, f"{name} ({program})"], numbered) if free not in used)
