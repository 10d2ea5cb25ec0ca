from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils import timezone

from memoryhub.as_json import import_json
from memoryhub.find_by_name import find_workspace
from memoryhub.jobs.labels import added_label
from memoryhub.lib.errors import Invalid, MemoryHubError
from memoryhub.lib.files.safe_folder import display_path
from memoryhub.lib.problem_groups import problem_lines
from memoryhub.management.json_command import JsonCommand
from memoryhub.management.progress_bar import progress_bar
from memoryhub.models import Process
from memoryhub.processes import registered
from memoryhub.sync.import_requests import anywhere, run_import
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.overlaps import overlaps_at
from memoryhub.sync.projects import Home, open_home
from memoryhub.sync.source_folders import add_folder, open_source, preview, sync_folder
from memoryhub.templatetags.memoryhub import filesize
from sessions_app.models import ImportReport, SourceFolder, Workspace
from sessions_app.models.workspaces import program_label
from sessions_app.services.audit import Actor, By
from sessions_app.services.syncing import switch_sync

LAYOUTS = ("auto", *Workspace.Layout.values)
COMMAND = Actor("command", "import_workspace")


class Command(JsonCommand):
    stopped = "Stopped. What was imported so far is kept. Run the command again to continue."
    help = "Import an agent's folder, an AgTerm export or an archive. Can be repeated; never deletes anything."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", help="the folder, file or archive")
        parser.add_argument("--layout", choices=LAYOUTS, default="auto", help="the program that wrote it")
        parser.add_argument("--name", default="", help="name of a new workspace")
        parser.add_argument(
            "--project",
            action="append",
            default=[],
            help="a project in an agent's home, by name or label; may be repeated",
        )
        parser.add_argument("--all", action="store_true", help="all projects in an agent's home")
        parser.add_argument("--follow", action="store_true", help="let the worker follow the folder from now on")
        parser.add_argument(
            "--into",
            default="",
            metavar="WORKSPACE",
            help="add the folder to a workspace that has another one; it is read and never written to",
        )
        parser.add_argument("--label", default="", help="name of the folder in the workspace, with --into")
        parser.add_argument("--dry-run", action="store_true", help="only show what would be imported")

    def run(
        self,
        *,
        path: str,
        layout: str,
        name: str,
        project: list[str],
        all: bool,  # noqa: A002
        follow: bool,
        dry_run: bool,
        into: str = "",
        label: str = "",
        json: bool = False,
        **_options: Any,
    ) -> dict[str, Any]:
        folder = Path(path).expanduser().resolve()
        projects = self._projects(_home(folder, layout), project, is_all=all, as_json=json)
        if len(projects) > 1 and name:
            raise Invalid("--name is for one project.", code="wrong_arguments")
        if into:
            if len(projects) > 1 or name:
                raise Invalid("--into is for one project, and doesn't go with --name.", code="wrong_arguments")
            wanted = {"project": projects[0], "layout": layout, "label": label}
            return _add(find_workspace(into), folder, follow=follow, dry_run=dry_run, **wanted)
        options: dict[str, Any] = {"name": name, "layout": layout, "follow": follow, "dry_run": dry_run}
        if len(projects) == 1:
            return self._import(folder, projects[0], **options)
        imports = []
        for each in projects:
            one = self._import_or_fail(folder, each, **options)
            imports.append(one)
            if not json:
                self._show(one)
        return {"imports": imports, "dry_run": dry_run}

    def _projects(self, home: Home | None, wanted: list[str], *, is_all: bool, as_json: bool) -> list[str]:
        """Return the names of the projects to import; an empty one for a folder without projects."""
        if home is None:
            if wanted:
                raise Invalid("This folder has no projects. Leave out --project.", code="unknown_project")
            return [""]
        if wanted:
            return [_project_named(home, text) for text in wanted]
        if is_all or len(home.projects) == 1:
            return home.names()
        if as_json or not sys.stdin.isatty():
            if not as_json:
                self._list(home)
            raise _several(home)
        self._list(home)
        return _chosen(home, input("Import which projects? Numbers, such as 1,3-5, or Enter for all: "))

    def _list(self, home: Home) -> None:
        label = program_label(home.found.layout, home.found.version)
        self.line(f"{label}: {len(home.projects)} projects, {filesize(home.byte_count)}")
        for number, project in enumerate(home.projects, 1):
            when = f"{project.last_active:%Y-%m-%d}" if project.last_active else "no date"
            size = filesize(project.byte_count)
            known = home.workspaces.get(project.name)
            self.line(
                f"{number:>4}  {project.label}  ({project.session_count:,} sessions, {size}, {when})"
                f"{f'  imported as {known.slug}' if known else ''}"
            )

    def _import_or_fail(self, folder: Path, project: str, **options: Any) -> dict[str, Any]:
        try:
            return self._import(folder, project, **options)
        except MemoryHubError as error:
            self.exit_status = 1
            return {"project": project, "error": {"code": error.code, "message": error.message}}

    def _import(
        self, folder: Path, project: str, *, name: str, layout: str, follow: bool, dry_run: bool
    ) -> dict[str, Any]:
        by, progress = By(COMMAND, timezone.now()), progress_bar("files")
        overlaps = self._overlaps(folder, layout, project)
        if dry_run:
            options = {"name": name, "layout": layout, "project": project}
            result = import_workspace(
                folder,
                by=by,
                dry_run=True,
                progress=progress,
                may_read=anywhere,
                **options,
            )
        else:
            report = ImportReport.objects.create(
                path=display_path(str(folder)), project=project, name=name, wanted_layout=layout
            )
            with registered(Process.Kind.COMMAND):
                result = run_import(report, by=by, progress=progress)
            if follow:
                switch_sync(result.workspace, follow=True, by=by)
        found: dict[str, Any] = {"project": project} if project else {}
        found |= {"overlaps": overlaps} if overlaps else {}
        return import_json(result.workspace, result.found, result.tally) | {"dry_run": dry_run} | found

    def _overlaps(self, folder: Path, layout: str, project: str) -> list[str]:
        """Return the slugs of other workspaces with the same memory, and warn of them."""
        if Workspace.objects.filter(path=str(folder), project=project).exists():
            return []
        slugs = [workspace.slug for workspace in overlaps_at(folder, layout, project)]
        if slugs:
            self.stderr.write(f"This memory is already in the workspace {', '.join(slugs)}, from another folder.")
        return slugs

    def show(self, result: dict[str, Any]) -> None:
        if "imports" not in result:
            self._show(result)

    def _show(self, result: dict[str, Any]) -> None:
        if "error" in result:
            self.line(f"{result['project']}: {result['error']['message']}")
            return
        words = "Would import" if result["dry_run"] else "Imported"
        self.line(f"{words} {result['workspace']} ({program_label(result['layout'], result['version'])})")
        for word in ("added", "updated", "unchanged"):
            counts = added_label(result[word])
            self.line(f"  {word}: {counts or 'nothing'}")
        for line in problem_lines(result["problems"]):
            self.line(f"  {line}")


def _add(workspace: Workspace, path: Path, *, follow: bool, dry_run: bool, **options: str) -> dict[str, Any]:
    """Add a folder to a workspace, and import it; one that was added before is imported again."""
    by = By(COMMAND, timezone.now())
    source = open_source(workspace, path, may_read=anywhere, **options)
    known = SourceFolder.objects.filter(workspace=workspace, path=source.path, project=source.project).first()
    if dry_run:
        result = preview(known or source, by=by)
    else:
        if known is None or known.removed_at is not None:
            known = add_folder(workspace, path, by=by, may_read=anywhere, follow=follow, **options)
        result = sync_folder(known, by=by, full=True)
    label = result.source.label if result.source else ""
    return import_json(workspace, result.found, result.tally) | {"dry_run": dry_run, "folder": label}


def _home(folder: Path, layout: str) -> Home | None:
    try:
        return open_home(folder, layout)
    except MemoryHubError:  # the import reports it
        return None


def _project_named(home: Home, text: str) -> str:
    names = [one.name for one in home.projects if one.name == text]
    names = names or [one.name for one in home.projects if text in (one.label, one.path)]
    if len(names) == 1:
        return names[0]
    why = f"Several projects are called {text}. Give one's name" if names else f"This folder has no project {text}"
    raise Invalid(f"{why}: {', '.join(names or home.names())}.", code="unknown_project")


def _chosen(home: Home, answer: str) -> list[str]:
    """Return the names for numbers and ranges such as ``1,3-5``; all for an empty answer."""
    numbers: dict[int, None] = {}
    for part in answer.replace(",", " ").split():
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise Invalid(f"{part} is not a number of the list.", code="wrong_arguments")
        numbers |= dict.fromkeys(range(int(first), min(int(last or first), len(home.projects)) + 1))
    if not answer.strip():
        return home.names()
    names = [home.projects[number - 1].name for number in numbers if 0 < number <= len(home.projects)]
    if not names:
        raise Invalid("No project was chosen.", code="wrong_arguments")
    return names


def _several(home: Home) -> Invalid:
    projects = [
        {
            "name": one.name,
            "label": one.label,
            "path": one.path,
            "sessions": one.session_count,
            "bytes": one.byte_count,
            "last_active": one.last_active,
            "workspace": home.workspaces[one.name].slug if one.name in home.workspaces else None,
        }
        for one in home.projects
    ]
    message = "This folder contains several projects. Choose with --project NAME, which may be repeated, or --all."
    return Invalid(message, code="several_projects", projects=projects)
