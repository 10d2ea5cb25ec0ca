from __future__ import annotations

import json
import signal
from argparse import ArgumentParser, BooleanOptionalAction
from pathlib import Path
from threading import Event
from typing import Any

from django.db.models import Q
from django.utils import timezone

from memoryhub.as_json import folder_json, import_json
from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import MemoryHubError, NotFound
from memoryhub.lib.problem_groups import problem_lines
from memoryhub.management.json_command import JsonCommand
from memoryhub.sync.source_folders import remove_folder, sync_folders
from memoryhub.sync.status import waiting_files, written_files
from memoryhub.sync.syncing import SyncResult, sync_workspace
from memoryhub.sync.watching import Followed, follow_workspaces, followed_workspaces
from sessions_app.models import SourceFolder, SyncState, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.syncing import switch_sync

COMMAND = Actor("command", "sync")
SWITCHES = {
    "follow": "following the folder",
    "write_back": "writing back",
    "write_instructions": "writing instructions",
}


class Command(JsonCommand):
    help = "Sync workspaces with their agents' folders."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "workspaces", nargs="*", metavar="WORKSPACE", help="the workspace (default: all with a folder)"
        )
        parser.add_argument(
            "--watch", action="store_true", help="keep syncing until stopped (default: all followed workspaces)"
        )
        parser.add_argument("--full", action="store_true", help="read every file, even if it looks unchanged")
        parser.add_argument("--status", action="store_true", help="only show the state of each file")
        parser.add_argument(
            "--two-way", action=BooleanOptionalAction, help="sync in both directions from now on, by the worker"
        )
        parser.add_argument(
            "--follow", action=BooleanOptionalAction, help="let the worker follow the folder from now on"
        )
        parser.add_argument(
            "--write-back", action=BooleanOptionalAction, help="let the hub write to the folder from now on"
        )

        parser.add_argument(
            "--write-instructions",
            action=BooleanOptionalAction,
            help="include the instructions that people keep, such as CLAUDE.md, in what is written back",
        )

        parser.add_argument(
            "--remove-folder",
            dest="remove",
            default="",
            metavar="LABEL",
            help="stop reading a further folder of the workspace; what was read from it stays",
        )

    def run(
        self,
        *,
        workspaces: list[str],
        watch: bool,
        full: bool,
        status: bool,
        two_way: bool | None,
        follow: bool | None,
        write_back: bool | None,
        write_instructions: bool | None = None,
        remove: str = "",
        json: bool,
        **_options: Any,
    ) -> dict[str, Any]:
        chosen = [find_workspace(name) for name in workspaces]
        if remove:
            return _remove(chosen, remove)
        if two_way is not None:
            follow, write_back = two_way, two_way
        for workspace in chosen:
            switches = {"follow": follow, "write_back": write_back, "write_instructions": write_instructions}
            switch_sync(workspace, **switches, by=By(COMMAND, timezone.now()))
            if not json:
                self._show_switches(workspace, switches)
        if watch:
            return self._watch([workspace.pk for workspace in chosen], as_json=json)
        chosen = chosen or _all()
        if status:
            return _one_or_all([_status(workspace) for workspace in chosen])
        if len(workspaces) == 1:
            return _sync_all(chosen[0], full=full)
        return {"workspaces": [self._sync(workspace, full=full) for workspace in chosen]}

    def _show_switches(self, workspace: Workspace, switches: dict[str, bool | None]) -> None:
        for name, is_on in switches.items():
            if is_on is not None:
                self.line(f"{workspace.slug}: {SWITCHES[name]} is {'on' if is_on else 'off'}")

    def show(self, result: dict[str, Any]) -> None:
        for one in result.get("workspaces", [result] if "workspace" in result else []):
            self._show(one)

    def _show(self, one: dict[str, Any]) -> None:
        self.line(f"{one['workspace']}: {_words(one)}")
        if one.get("last_error"):
            self.line(f"  last sync failed: {one['last_error']['message']}")
        for folder in one["folders"] if isinstance(one.get("folders"), list) else []:
            self.line(f"  further folder {folder['label']}: {folder['path']} ({folder['error'] or 'read only'})")
        for label, result in one["folders"].items() if isinstance(one.get("folders"), dict) else []:
            self.line(f"  {label}: {_words(result)}")
        for file in one.get("files", []):
            self.line(f"  {file['standing']}: {file['path']}{': ' if file['note'] else ''}{file['note']}")
        for line in problem_lines(one.get("problems", [])):
            self.line(f"  {line}")
        for file in one.get("written", []):
            self.line(f"  {file['verdict']}: {file['path']}{': ' if file['why'] else ''}{file['why']}")
        if one.get("waiting"):
            self.line(f"  waiting in the hub: {', '.join(one['waiting'])} (--write-back lets the hub write them)")

    def _sync(self, workspace: Workspace, *, full: bool) -> dict[str, Any]:
        try:
            return _sync_all(workspace, full=full)
        except MemoryHubError as error:
            self.exit_status = 1
            return {"workspace": workspace.slug, "error": {"code": error.code, "message": error.message}}

    def _watch(self, pks: list[int], *, as_json: bool) -> dict[str, Any]:
        stopping = Event()
        turns = 0

        def on_result(workspace: Workspace, outcome: SyncResult | MemoryHubError) -> None:
            nonlocal turns
            turns += 1
            if isinstance(outcome, MemoryHubError):
                one = {"workspace": workspace.slug, "error": {"code": outcome.code, "message": outcome.message}}
            else:
                one = _document(outcome)
            if as_json:
                self.stdout.write(json.dumps(one, ensure_ascii=False, default=str))
            else:
                self._show(one)
            self.stdout.flush()

        def chosen() -> list[Followed]:
            if not pks:
                return followed_workspaces()
            folders = SourceFolder.objects.filter(workspace__in=pks, removed_at=None).select_related("workspace")
            return [*Workspace.objects.filter(pk__in=pks).exclude(path=""), *folders]

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        if not as_json:
            self.line("Watching for changes. Press Ctrl-C to stop.")
            self.stdout.flush()
        follow_workspaces(stopping, chosen, actor=COMMAND, on_result=on_result)
        return {"stopped": True, "turns": turns}


def _all() -> list[Workspace]:
    """Return the workspaces with a folder, their own or a further one."""
    fed = SourceFolder.objects.filter(removed_at=None).values("workspace")
    known = Workspace.objects.filter(~Q(path="") | Q(pk__in=fed)).order_by("id")
    return [workspace for workspace in known if not (workspace.path and Path(workspace.path).is_file())]


def _one_or_all(documents: list[dict[str, Any]]) -> dict[str, Any]:
    return documents[0] if len(documents) == 1 else {"workspaces": documents}


def _document(result: SyncResult) -> dict[str, Any]:
    workspace = result.workspace
    waiting = [] if workspace.write_back else [file.path for file in waiting_files(workspace)]
    return import_json(workspace, result.found, result.tally) | {
        "written": [{"path": one.path, "verdict": one.verdict, "why": one.why} for one in result.written],
        "waiting": waiting,
        "lag_seconds": result.lag_seconds,
    }


def _remove(chosen: list[Workspace], label: str) -> dict[str, Any]:
    folder = SourceFolder.objects.filter(workspace__in=chosen, label=label, removed_at=None).first()
    if len(chosen) != 1 or folder is None:
        raise NotFound(f"The workspace has no further folder named {label}.", code="unknown_folder")
    remove_folder(folder, by=By(COMMAND, timezone.now()))
    return _status(chosen[0])


def _sync_all(workspace: Workspace, *, full: bool) -> dict[str, Any]:
    """Sync a workspace with its own folder and the further ones; "folders" has the results of those, by label."""
    by = By(COMMAND, timezone.now())
    further = {
        folder.label: _document(result)
        if isinstance(result, SyncResult)
        else {"error": {"code": result.code, "message": result.message}}
        for folder, result in sync_folders(workspace, by=by, full=full)
    }
    own = {"workspace": workspace.slug}
    if workspace.path or not further:
        own = _document(sync_workspace(workspace, by=by, full=full))
    return own | ({"folders": further} if further else {})


def _status(workspace: Workspace) -> dict[str, Any]:
    state = SyncState.objects.filter(workspace=workspace).first() or SyncState()
    error = {"code": state.error_code, "message": state.error} if state.error_code else None
    return {
        "workspace": workspace.slug,
        "path": workspace.path,
        "two_way": workspace.is_two_way,
        "agent_changes": workspace.agent_changes,
        "follow": workspace.is_followed,
        "write_back": workspace.write_back,
        "unavailable_since": workspace.unavailable_since,
        "last_success_at": state.succeeded_at,
        "last_change_at": state.changed_at,
        "last_error": error,
        "lag_seconds": state.lag_seconds,
        "counts": state.counts,
        "folders": [folder_json(folder) for folder in workspace.source_folders.filter(removed_at=None)],
        "files": [
            {"path": file.path, "kind": file.kind, "standing": file.standing, "note": file.note}
            for file in written_files(workspace)
        ],
    }


def _words(one: dict[str, Any]) -> str:
    if one.get("error"):
        return str(one["error"]["message"])
    if "files" in one:
        switches = ["followed" if one["follow"] else "not followed"]
        switches.append("written to" if one["write_back"] else "not written to")
        return ", ".join(switches)
    parts = [f"{word} {_listed(one[word])}" for word in ("added", "updated") if one.get(word)]
    return "; ".join(parts) or "nothing new in the folder"


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in counts.items())
