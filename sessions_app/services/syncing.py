"""The switches of a workspace's sync, and the results of its last syncs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from django.db import transaction
from django.utils.translation import gettext

from memoryhub.lib.errors import MemoryHubError, Refused
from sessions_app.models import SourceFolder, SyncState, Workspace
from sessions_app.models.workspaces import INSTRUCTED, WRITTEN_BACK
from sessions_app.services.audit import By
from sessions_app.services.workspaces import save_settings

QUIET_NOTE = timedelta(seconds=15)  # between records of syncs that changed nothing: SQLite has one writer


@dataclass(frozen=True)
class Outcome:
    """The result of a sync: counts by action and kind, and the paths that can't be written, with the reasons."""

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    lag_seconds: float | None = None
    unwritten: Mapping[str, str] = field(default_factory=dict)
    knowledge_mark: str = ""

    @property
    def has_changed(self) -> bool:
        return any(self.counts.values())


@transaction.atomic
def switch_sync(
    workspace: Workspace,
    *,
    follow: bool | None = None,
    write_back: bool | None = None,
    write_instructions: bool | None = None,
    by: By,
) -> bool:
    """Turn following a folder and writing to it on or off (None: unchanged); return whether anything changed.

    ``write_instructions``: whether writing includes the instructions that people keep, such as CLAUDE.md. Raises
    Refused if the workspace has no folder, or one that the hub never writes to.
    """
    if (follow or write_back) and not workspace.path:
        raise Refused(
            gettext("This workspace has no folder. Its agent writes directly to the hub."), code="cannot_sync"
        )
    if (follow or write_back) and Path(workspace.path).is_file():
        raise Refused(gettext("Only a folder can be synced, not a file or an archive."), code="cannot_sync")
    writes_instructions = workspace.write_instructions if write_instructions is None else write_instructions
    has_instructions = workspace.layout in INSTRUCTED
    can_write = workspace.layout in WRITTEN_BACK or (has_instructions and writes_instructions)
    if (write_back and not can_write) or (write_instructions and not has_instructions):
        words = gettext("The hub never writes to %(program)s folders.")
        raise Refused(words % {"program": workspace.get_layout_display()}, code="cannot_sync")
    if not can_write and workspace.write_back:
        write_back = False
    switches = {"is_followed": follow, "write_back": write_back, "write_instructions": write_instructions}
    values = {name: is_on for name, is_on in switches.items() if is_on is not None}
    return bool(values and save_settings(workspace, values, by=by))


def record_success(
    workspace: Workspace, outcome: Outcome, *, started_at: datetime, now: datetime, always: bool = False
) -> None:
    """Store the result of a sync; one without changes soon after another only if ``always``."""
    state = SyncState.objects.filter(workspace=workspace).first() or SyncState(workspace=workspace)
    same = (state.unwritten, state.knowledge_mark) == (dict(outcome.unwritten), outcome.knowledge_mark)
    is_fresh = state.succeeded_at is not None and now - state.succeeded_at < QUIET_NOTE
    if is_fresh and same and not (outcome.has_changed or state.error_code or always):
        return
    state.started_at, state.succeeded_at = started_at, now
    state.failed_at, state.error_code, state.error = None, "", ""
    state.unwritten, state.knowledge_mark = dict(outcome.unwritten), outcome.knowledge_mark
    if outcome.has_changed:
        state.changed_at = now
        state.counts = {word: dict(kinds) for word, kinds in outcome.counts.items() if kinds}
        state.lag_seconds = outcome.lag_seconds if outcome.lag_seconds is not None else state.lag_seconds
    state.save()


def record_idle(workspaces: Collection[int], folders: Collection[int], now: datetime) -> None:
    """Store that nothing changed in folders that are in sync: of workspaces, and further ones, by primary key."""
    states = SyncState.objects.filter(workspace__in=workspaces, error_code="").exclude(succeeded_at=None)
    states.update(succeeded_at=now)
    known = SourceFolder.objects.filter(pk__in=folders, error_code="").exclude(succeeded_at=None)
    known.update(succeeded_at=now)


def record_failure(
    workspace: Workspace, error: MemoryHubError, *, started_at: datetime, now: datetime, always: bool = False
) -> None:
    """Store that a sync failed; the same failure soon after only if ``always``."""
    state = SyncState.objects.filter(workspace=workspace).first() or SyncState(workspace=workspace)
    is_known = state.error_code == error.code and state.failed_at is not None
    if is_known and state.failed_at is not None and now - state.failed_at < QUIET_NOTE and not always:
        return
    state.started_at, state.failed_at = started_at, now
    state.error_code, state.error = error.code, error.message
    state.save()
